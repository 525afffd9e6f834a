import { setTimeout as delay } from 'node:timers/promises';

import { begin, type PendingRequest, ratePath } from '../http-client.js';
import type { Fleet } from './fleet.js';
import type { Ended, Entry, Ledger } from './ledger.js';
import { GROUPS, KEYS, LANES, LONGEST_REPORT_MILLIS, MOST_HITS } from './limits.js';
import type { Random } from './random.js';

/** How many clients of each sort there are. Each has at most one request under way. */
const CLIENTS = {
  checkers: 7,
  waiters: 42,
  disconnecters: 8,
  releasers: 8,
  users: 6,
  listed: 36,
  pausers: 1,
  reporters: 1,
};
const WAITED_KEYS = [...KEYS.queued, ...KEYS.released];
/** A client does not knock again at once where nobody opens. */
const PAUSE_AFTER_CUT_MILLIS = 50;

interface LoadParts {
  readonly fleet: Pick<Fleet, 'indexes' | 'urlOf'>;
  readonly ledger: Ledger;
  readonly random: Random;
}

type Target = Pick<
  Entry,
  'key' | 'replica' | 'limitMillis' | 'hits' | 'holdMillis' | 'lane' | 'group'
>;

/**
 * Clients that ask for permission, wait for it, also in lanes and groups, disconnect, release, correct and hold approvals,
 * pause keys, and report what remains of them. The seed alone decides what each of them does. The speed of its answers decides when. Nothing is asked twice.
 */
export class Load {
  readonly #clients: Promise<void>[];
  #isOver = false;

  constructor(private readonly parts: LoadParts) {
    const several = (count: number, name: string, act: (random: Random) => Promise<void>) =>
      Array.from({ length: count }, (_, i) => this.#repeat(parts.random.fork(`${name} ${i}`), act));
    this.#clients = [
      ...several(CLIENTS.checkers, 'checker', (random) => this.#check(random)),
      ...several(CLIENTS.waiters, 'waiter', (random) => this.#wait(random)),
      ...several(CLIENTS.disconnecters, 'disconnecter', (random) =>
        this.#waitAndDisconnect(random),
      ),
      ...several(CLIENTS.releasers, 'releaser', (random) => this.#useAndRelease(random)),
      ...several(CLIENTS.users, 'user', (random) => this.#useLimited(random)),
      ...several(CLIENTS.listed, 'listed', (random) => this.#waitInList(random)),
      ...several(CLIENTS.pausers, 'pauser', (random) => this.#pause(random)),
      ...several(CLIENTS.reporters, 'reporter', (random) => this.#report(random)),
    ];
  }

  /** Asks nothing more, and resolves when every client has its answer. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #repeat(random: Random, act: (random: Random) => Promise<void>): Promise<void> {
    while (!this.#isOver) await act(random);
  }

  async #check(random: Random): Promise<void> {
    const target = this.#target(random, random.chance(0.1) ? WAITED_KEYS : KEYS.counted);
    await delay(random.whole(10, 60));
    await this.#request('check', target);
  }

  async #wait(random: Random): Promise<void> {
    const target = this.#target(random, WAITED_KEYS);
    const limitMillis = random.chance(0.3) ? random.whole(50, 3000) : undefined;
    await delay(random.whole(0, 300));
    await this.#request('wait', { ...target, limitMillis });
  }

  async #waitAndDisconnect(random: Random): Promise<void> {
    const target = this.#target(random, WAITED_KEYS);
    const stays = random.chance(0.5) ? random.whole(0, 20) : random.whole(20, 1500);
    await delay(random.whole(0, 200));
    await this.#request('disconnect', target, stays);
  }

  async #useAndRelease(random: Random): Promise<void> {
    const target = this.#target(random, KEYS.released);
    const pause = random.whole(10, 80);
    const holds = random.whole(0, 150);
    const [first, second] = [
      random.pick(this.parts.fleet.indexes),
      random.pick(this.parts.fleet.indexes),
    ];
    const isReleasedTwice = random.chance(0.2);
    await delay(pause);
    const requestId = await this.#request('check', target);
    if (requestId === undefined) return;
    await delay(holds);
    await Promise.all([
      this.#release({ ...target, replica: first }, requestId),
      isReleasedTwice && this.#release({ ...target, replica: second }, requestId),
    ]);
  }

  /** An approval with hits, or a hold, which is renewed, or both; it is corrected, released, or neither. */
  async #useLimited(random: Random): Promise<void> {
    const { indexes } = this.parts.fleet;
    const target = {
      ...this.#target(random, KEYS.limited),
      hits: random.chance(0.5) ? random.whole(2, MOST_HITS) : undefined,
      holdMillis: random.chance(0.4) ? random.whole(1000, 2500) : undefined,
      limitMillis: random.chance(0.5) ? random.whole(50, 3000) : undefined,
    };
    const kind = random.pick(['check', 'wait', 'wait'] as const);
    const [pause, uses] = [random.whole(0, 200), random.whole(0, 300)];
    const changes = target.holdMillis === undefined ? random.whole(0, 1) : random.whole(0, 3);
    const amendments = Array.from({ length: changes }, () => ({
      replica: random.pick(indexes),
      after: random.whole(0, 600),
      hits:
        target.holdMillis === undefined || random.chance(0.2)
          ? random.whole(1, MOST_HITS + 1)
          : undefined,
    }));
    const isReleased = random.chance(0.5);
    const replica = random.pick(indexes);
    await delay(pause);
    const requestId = await this.#request(kind, {
      ...target,
      limitMillis: kind === 'check' ? undefined : target.limitMillis,
    });
    if (requestId === undefined) return;
    await delay(uses);
    const { key } = target;
    for (const amendment of amendments) {
      await delay(amendment.after);
      await this.#amend({ key, ...amendment }, requestId);
    }
    if (isReleased) await this.#release({ key, replica }, requestId);
  }

  /** In a lane or a group, if the rules have not changed since, or naming none. */
  async #waitInList(random: Random): Promise<void> {
    const index = random.whole(0, KEYS.ordered.length - 1);
    const replica = random.pick(this.parts.fleet.indexes);
    const name = random.pick(index % 2 === 0 ? Object.keys(LANES) : GROUPS);
    const target = {
      key: KEYS.ordered[index]!,
      replica,
      ...(random.chance(0.9) && { [index % 2 === 0 ? 'lane' : 'group']: name }),
      hits: random.chance(0.3) ? random.whole(2, MOST_HITS) : undefined,
      limitMillis: random.chance(0.2) ? random.whole(50, 3000) : undefined,
    };
    const kind = random.pick(['check', 'disconnect', 'wait', 'wait', 'wait', 'wait'] as const);
    const stays = random.whole(0, 1500);
    const [pause, uses] = [random.whole(0, 300), random.whole(0, 100)];
    const isReleased = random.chance(0.2);
    await delay(pause);
    const requestId = await this.#request(
      kind,
      { ...target, limitMillis: kind === 'check' ? undefined : target.limitMillis },
      kind === 'disconnect' ? stays : undefined,
    );
    if (requestId === undefined || !isReleased) return;
    await delay(uses);
    await this.#release({ key: target.key, replica }, requestId);
  }

  async #pause(random: Random): Promise<void> {
    const { key, replica } = this.#target(random, KEYS.limited);
    const pauseMillis = random.chance(0.2) ? 0 : random.whole(100, 800);
    await delay(random.whole(500, 1500));
    const request = { key, replica, pauseMillis };
    const ended = this.parts.ledger.sent({ ...request, kind: 'pause', requestId: undefined });
    const path = `${ratePath(key)}?pauseMillis=${pauseMillis}`;
    await this.#change('PUT', replica, path, ended);
  }

  /** Of the key's own limit, whatever kind it is. */
  async #report(random: Random): Promise<void> {
    const { key, replica } = this.#target(random, KEYS.limited);
    const remaining = random.whole(0, 5);
    const resetMillis = random.chance(0.8) ? random.whole(100, LONGEST_REPORT_MILLIS) : undefined;
    await delay(random.whole(300, 1000));
    const request = { key, replica, remaining };
    const ended = this.parts.ledger.sent({ ...request, kind: 'report', requestId: undefined });
    const path = `${ratePath(key)}${queryOf({ remaining, resetMillis })}`;
    await this.#change('PUT', replica, path, ended);
  }

  #target(random: Random, keys: readonly string[]): Target {
    return { key: random.pick(keys), replica: random.pick(this.parts.fleet.indexes) };
  }

  /** @returns the id of the approval, if it was one */
  async #request(
    kind: 'check' | 'wait' | 'disconnect',
    target: Target,
    disconnectsAfterMillis?: number,
  ): Promise<string | undefined> {
    const { limitMillis: maxWaitMillis, hits, holdMillis, lane, group } = target;
    const canWait = kind === 'check' ? undefined : true;
    const query = queryOf({ canWait, maxWaitMillis, hits, holdMillis, lane, group });
    const ended = this.parts.ledger.sent({ ...target, kind, requestId: undefined });
    const request = begin(
      this.parts.fleet.urlOf(target.replica),
      'POST',
      ratePath(target.key) + query,
    );
    const disconnects =
      disconnectsAfterMillis === undefined
        ? undefined
        : AbortSignal.timeout(disconnectsAfterMillis);
    disconnects?.addEventListener('abort', () => {
      request.disconnect();
    });
    const answer = await answerTo(request);
    if (!answer) {
      ended({ outcome: disconnects?.aborted === true ? 'disconnected' : 'cut' });
      if (disconnects?.aborted !== true) await delay(PAUSE_AFTER_CUT_MILLIS);
      return undefined;
    }
    const requestId = answer.status === 200 ? requestIdIn(answer.body) : undefined;
    ended({ outcome: 'answered', ...answer, requestId });
    return requestId;
  }

  async #release(target: Target, requestId: string): Promise<void> {
    const ended = this.parts.ledger.sent({ ...target, kind: 'release', requestId });
    await this.#change('DELETE', target.replica, `${ratePath(target.key)}/${requestId}`, ended);
  }

  /** Corrects an approval, or renews its hold. */
  async #amend(target: Target, requestId: string): Promise<void> {
    const { key, replica, hits } = target;
    const ended = this.parts.ledger.sent({ key, replica, hits, kind: 'amend', requestId });
    const path = `${ratePath(key)}/${requestId}${queryOf({ hits })}`;
    await this.#change('PUT', replica, path, ended);
  }

  async #change(
    method: string,
    replica: number,
    path: string,
    ended: (ended: Ended) => void,
  ): Promise<void> {
    const url = this.parts.fleet.urlOf(replica);
    const answer = await answerTo(begin(url, method, path));
    ended(answer ? { outcome: 'answered', ...answer } : { outcome: 'cut' });
  }
}

function queryOf(
  parameters: Readonly<Record<string, number | boolean | string | undefined>>,
): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  if (given.length === 0) return '';
  return `?${given.map(([name, value]) => `${name}=${String(value)}`).join('&')}`;
}

/** @returns nothing where the connection broke */
async function answerTo(
  request: PendingRequest,
): Promise<
  (Required<Pick<Entry, 'body' | 'retryAfter' | 'maximum'>> & { status: number }) | undefined
> {
  try {
    const { status, text, headers } = await request.answer;
    const [, maximum] = /;q=(\d+)/.exec(String(headers['ratelimit-policy'])) ?? [];
    return {
      status,
      body: text,
      retryAfter: headers['retry-after'],
      maximum: maximum === undefined ? undefined : Number(maximum),
    };
  } catch {
    return undefined;
  }
}

function requestIdIn(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { request_id?: string }).request_id;
  } catch {
    return undefined;
  }
}
