import { setTimeout as delay } from 'node:timers/promises';

import type { Random } from './chaos/random.js';
import { begin, type PendingRequest, ratePath } from './http-client.js';
import { until } from './until.js';

const TICK_MILLIS = 50;
/** Redis counts whole milliseconds. */
const ROUNDED_MILLIS = 1;

/** An approval as its worker knows it. */
interface Holding {
  readonly answeredAt: number;
  /** It surely counts until then: a renewal that finds it also shows that it counted all the time before. */
  surelyUntil: number;
  /** It does not count any more from then on; infinite while its worker lives. */
  atMostUntil: number;
}

/** What workers found by their own clock. */
export interface HoldingAccount {
  /** How many approvals were answered. */
  readonly answered: number;
  /** How many workers ended without a release. */
  readonly killed: number;
  /** How often all workers that held an approval ended at once. */
  readonly allKilled: number;
  /** The most approvals that surely counted at the same time. */
  readonly mostAtOnce: number;
  /** For how long, in ms, a slot was free at the most while somebody waited. */
  readonly longestIdle: number;
  /** The answers that no worker expects. */
  readonly unexpected: readonly string[];
}

export interface HoldingWorkersOptions {
  readonly urls: readonly string[];
  readonly key: string;
  readonly slots: number;
  readonly holdMillis: number;
  readonly workers: number;
  readonly random: Random;
}

/**
 * Workers that share some slots. Each waits for one, renews its hold, and releases it, or ends without a word: while it
 * waits, between two renewals, or during one. Another takes its place. Now and then all that hold a slot end at once, so
 * that nothing but the lapses gives the slots to others.
 */
export class HoldingWorkers {
  readonly #holdings: Holding[] = [];
  readonly #unexpected: string[] = [];
  readonly #waiting = new Set<PendingRequest>();
  #killed = 0;
  #allKilled = 0;
  /** Approvals since all were killed. */
  #answeredSince = 0;
  /** Workers that hold a slot, and have neither ended nor begun to release it. */
  #atWork = 0;
  #kill = new AbortController();
  #isStopping = false;
  #idleMillis = 0;
  #longestIdle = 0;

  constructor(private readonly options: HoldingWorkersOptions) {}

  /** Lets them work for some time, until all that held a slot were killed at least once, and others followed. */
  async work(millis: number): Promise<HoldingAccount> {
    const { workers, random } = this.options;
    const working = Array.from({ length: workers }, (_, i) => this.#worker(random.fork(`${i}`)));
    // Counted in ticks, so that a pause of the machine counts as one.
    const ticks = setInterval(() => {
      this.#tick();
    }, TICK_MILLIS);
    await delay(millis);
    await until(() => this.#allKilled > 0 && this.#answeredSince > 0);
    clearInterval(ticks);
    this.#isStopping = true;
    for (const pending of this.#waiting) pending.disconnect();
    await Promise.all(working);
    return {
      answered: this.#holdings.length,
      killed: this.#killed,
      allKilled: this.#allKilled,
      mostAtOnce: mostAtOnce(this.#holdings),
      longestIdle: this.#longestIdle,
      unexpected: this.#unexpected,
    };
  }

  async #worker(random: Random): Promise<void> {
    while (!this.#isStopping) {
      const holding = await this.#wait(random);
      if (holding) await this.#hold(holding.requestId, holding.holding, random);
    }
  }

  async #wait(random: Random): Promise<{ requestId: string; holding: Holding } | undefined> {
    const { slots, holdMillis } = this.options;
    const query = `maxRequests=${slots}&holdMillis=${holdMillis}&canWait=true`;
    const pending = this.#begin('POST', `?${query}`, random);
    this.#waiting.add(pending);
    const leaves = random.chance(0.1) ? random.whole(0, 3000) : undefined;
    const timer = setTimeout(() => {
      // After all have been killed, nobody calls: the lapses alone give the slots to others.
      if (this.#answeredSince > 0) pending.disconnect();
    }, leaves);
    if (leaves === undefined) clearTimeout(timer);
    const answer = await pending.answer.catch(() => undefined);
    clearTimeout(timer);
    this.#waiting.delete(pending);
    if (!answer) return undefined;
    if (answer.status !== 200) {
      this.#unexpected.push(`check: ${answer.status} ${answer.text}`);
      return undefined;
    }
    const answeredAt = performance.now();
    const holding = { answeredAt, surelyUntil: answeredAt, atMostUntil: Infinity };
    this.#holdings.push(holding);
    this.#answeredSince += 1;
    return { requestId: (answer.json() as { request_id: string }).request_id, holding };
  }

  async #hold(requestId: string, holding: Holding, random: Random): Promise<void> {
    const { holdMillis, slots } = this.options;
    const kill = this.#kill.signal;
    this.#atWork += 1;
    if (this.#isGathering && this.#atWork >= slots) this.#killAll();
    const renewals = random.whole(1, 4);
    const isKilled = random.chance(0.2);
    for (let i = 1; i <= renewals || this.#isGathering; i += 1) {
      await delay(random.whole(10, 400), undefined, { signal: kill }).catch(() => undefined);
      if (kill.aborted && !this.#isStopping) break;
      const sentAt = performance.now();
      const renewal = this.#begin('PUT', `/${requestId}?`, random);
      if (isKilled && i === renewals && random.chance(0.5)) {
        setImmediate(() => {
          renewal.disconnect();
        });
        await renewal.answer.catch(() => undefined);
        break;
      }
      const { status, text } = await renewal.answer;
      if (status === 404) break;
      if (status !== 200) this.#unexpected.push(`renewal: ${status} ${text}`);
      holding.surelyUntil = sentAt + holdMillis - ROUNDED_MILLIS;
    }
    if (!kill.aborted) this.#atWork -= 1;
    if ((isKilled || kill.aborted) && !this.#isStopping) {
      this.#killed += 1;
      holding.atMostUntil = performance.now() + holdMillis;
      return;
    }
    holding.surelyUntil = Math.min(holding.surelyUntil, performance.now());
    const { status, text } = await this.#begin('DELETE', `/${requestId}`, random).answer;
    if (status !== 200 && status !== 404) this.#unexpected.push(`release: ${status} ${text}`);
    holding.atMostUntil = performance.now();
  }

  #begin(method: string, path: string, random: Random): PendingRequest {
    const { urls, key } = this.options;
    return begin(random.pick(urls), method, `${ratePath(key)}${path}`);
  }

  /** Whether workers keep their slots until they hold all of them, to be killed together. */
  get #isGathering(): boolean {
    return this.#answeredSince > 2 * this.options.slots && !this.#isStopping;
  }

  #killAll(): void {
    this.#allKilled += 1;
    this.#answeredSince = 0;
    this.#atWork = 0;
    this.#kill.abort();
    this.#kill = new AbortController();
  }

  /** How many may still hold a slot. */
  #occupied(): number {
    const now = performance.now();
    return this.#holdings.filter(({ atMostUntil }) => atMostUntil > now).length;
  }

  #tick(): void {
    const isIdle = this.#waiting.size > 0 && this.#occupied() < this.options.slots;
    this.#idleMillis = isIdle ? this.#idleMillis + TICK_MILLIS : 0;
    this.#longestIdle = Math.max(this.#longestIdle, this.#idleMillis);
  }
}

function mostAtOnce(holdings: readonly Holding[]): number {
  const changes = holdings
    .flatMap(({ answeredAt, surelyUntil }) => [
      { at: answeredAt, by: 1 },
      { at: surelyUntil, by: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by);
  let count = 0;
  let most = 0;
  for (const { by } of changes) {
    count += by;
    most = Math.max(most, count);
  }
  return most;
}
