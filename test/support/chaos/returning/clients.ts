import { setTimeout as delay } from 'node:timers/promises';

import { begin, ratePath } from '../../http-client.js';
import type { Fleet } from '../fleet.js';
import type { Random } from '../random.js';
import { type ReturningKey, RETURNING_KEYS } from './keys.js';
import type { Terms, Visit, Visits } from './visits.js';

/** Clients that wait, and those that only check, which must pass nobody. */
const CLIENTS = { returning: 200, newcomers: 6 };
const KEEPS_MILLIS = [1000, 1500, 3000];
/** A client goes elsewhere when a replica has been silent for so long. */
const LONGEST_VISIT_MILLIS = 2500;
/** A client does not knock again at once where nobody opens. */
const PAUSE_AFTER_CUT_MILLIS = 50;
/** Requests that nobody returns for are forgotten, and a later one has another id. */
const GIVES_UP = 0.1;

interface ClientParts {
  readonly fleet: Pick<Fleet, 'indexes' | 'at'>;
  readonly visits: Visits;
  readonly random: Random;
}

/** How a visit goes. */
interface Plan {
  readonly preferSeconds?: number | undefined;
  /** When the client closes the connection. */
  readonly closesAfterMillis: number;
  /** When it asks again at another replica, without closing this connection. */
  readonly asksAgainAfterMillis?: number | undefined;
}

/**
 * Clients that wait with an id of their own, whose places outlive their connections: they leave at any moment, and most
 * of them return, on any replica. The seed decides what each of them does with an answer. Which answers it gets, and when,
 * depends on the service.
 */
export class ReturningClients {
  readonly #clients: Promise<void>[];
  /** Visits that their clients have left open. */
  readonly #open = new Set<Promise<unknown>>();
  #isOver = false;

  constructor(private readonly parts: ClientParts) {
    const several = (count: number, name: string, act: (random: Random) => Promise<void>) =>
      Array.from({ length: count }, (_, i) => this.#repeat(parts.random.fork(`${name} ${i}`), act));
    this.#clients = [
      ...several(CLIENTS.returning, 'returning', (random) => this.#request(random)),
      ...several(CLIENTS.newcomers, 'newcomer', (random) => this.#check(random)),
    ];
  }

  /** Begins no more requests, and resolves when every client has its answer or has given up. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    await Promise.all(this.#open);
  }

  async #repeat(random: Random, act: (random: Random) => Promise<void>): Promise<void> {
    while (!this.#isOver) await act(random);
  }

  /** A check that does not wait. It asks for every key, so that each key has a check all the time. */
  async #check(random: Random): Promise<void> {
    for (const { key } of random.shuffled(RETURNING_KEYS)) {
      await delay(random.whole(10, 60));
      const { url } = this.parts.fleet.at(random.pick(this.parts.fleet.indexes));
      await begin(url, 'POST', ratePath(key)).answer.catch(() => delay(PAUSE_AFTER_CUT_MILLIS));
    }
  }

  /** Asks until the request is decided, and then may use and release the approval; or leaves for good. */
  async #request(random: Random): Promise<void> {
    const terms = drawTerms(random);
    await delay(random.whole(0, 500));
    for (;;) {
      const last = await this.#visit(terms, drawPlan(random), random);
      const { status } = last;
      if (status === 200) return this.#use(terms, random);
      if (status === 429 || isReleasedConflict(last)) return;
      if (random.chance(GIVES_UP)) return;
      if (random.chance(0.03)) {
        await this.#release(terms, random);
        return;
      }
      await delay(pauseMillis(last, terms, random));
    }
  }

  /** @returns the visit that is answered or ended last */
  async #visit(terms: Terms, plan: Plan, random: Random): Promise<Visit> {
    const visit = this.#begin('check', terms, random, plan);
    const { asksAgainAfterMillis } = plan;
    if (asksAgainAfterMillis === undefined) return visit;
    this.#keepOpen(visit);
    const first = await Promise.race([visit, delay(asksAgainAfterMillis)]);
    return first ?? this.#begin('check', terms, random, drawPlan(random));
  }

  #keepOpen(visit: Promise<unknown>): void {
    this.#open.add(visit);
    void visit.finally(() => this.#open.delete(visit));
  }

  async #use(terms: Terms, random: Random): Promise<void> {
    const isReleased = random.chance(terms.holdMillis === undefined ? 0.2 : 0.7);
    const usesMillis = random.whole(0, 300);
    if (!isReleased) return;
    await delay(usesMillis);
    await this.#release(terms, random);
  }

  async #release(terms: Terms, random: Random): Promise<void> {
    await this.#begin('release', terms, random, { closesAfterMillis: LONGEST_VISIT_MILLIS });
  }

  async #begin(
    kind: Visit['kind'],
    terms: Terms,
    random: Random,
    { preferSeconds, closesAfterMillis }: Plan,
  ): Promise<Visit> {
    const replica = random.pick(this.parts.fleet.indexes);
    const { url, id: replicaId } = this.parts.fleet.at(replica);
    const { visit, ended } = this.parts.visits.sent({
      ...{ kind, terms, replica, replicaId, preferSeconds },
    });
    const headers = preferSeconds === undefined ? {} : { Prefer: `wait=${preferSeconds}` };
    const request =
      kind === 'check'
        ? begin(url, 'POST', checkPath(terms), headers)
        : begin(url, 'DELETE', `${ratePath(terms.key)}/${terms.id}`);
    const closing = AbortSignal.timeout(closesAfterMillis);
    const close = (): void => {
      ended({ outcome: 'closed' });
      request.disconnect();
    };
    closing.addEventListener('abort', close);
    try {
      const { status, text, headers: answered } = await request.answer;
      const { connection, 'retry-after': retryAfter } = answered;
      ended({ outcome: 'answered', status, body: text, retryAfter, connection });
    } catch {
      if (!closing.aborted) ended({ outcome: 'cut' });
    } finally {
      closing.removeEventListener('abort', close);
    }
    return visit;
  }
}

function drawTerms(random: Random): Terms {
  const { key, mostHits, hasHolds } = random.pick<ReturningKey>(RETURNING_KEYS);
  return {
    id: uuidOf(random),
    key,
    hits: random.whole(1, mostHits),
    keepMillis: random.pick(KEEPS_MILLIS),
    holdMillis: hasHolds && random.chance(0.3) ? random.whole(1000, 2000) : undefined,
    maxWaitMillis: random.chance(0.1) ? random.whole(500, 8000) : undefined,
  };
}

/** An id that follows from the seed, as all draws do. */
function uuidOf(random: Random): string {
  const digits = Array.from({ length: 32 }, () => random.whole(0, 15).toString(16)).join('');
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');
}

function drawPlan(random: Random): Plan {
  const staysMillis = random.whole(0, 1500);
  const preferSeconds = random.pick([0, 1, 1, 2]);
  const kind = random.pick([
    'waits',
    'waits',
    'prefers',
    'prefers',
    'leaves',
    'leaves',
    'asks again',
  ] as const);
  return {
    preferSeconds: kind === 'prefers' ? preferSeconds : undefined,
    closesAfterMillis: kind === 'leaves' ? staysMillis : LONGEST_VISIT_MILLIS,
    asksAgainAfterMillis: kind === 'asks again' ? staysMillis : undefined,
  };
}

/** After how long a client returns: mostly while its place is kept, now and then too late. */
function pauseMillis(
  { outcome, status, retryAfter }: Visit,
  { keepMillis }: Terms,
  random: Random,
): number {
  const millis = random.pick([
    random.whole(0, 50),
    random.whole(0, Math.floor(0.6 * keepMillis)),
    random.whole(0, Math.floor(0.9 * keepMillis)),
  ]);
  const isTooLong = random.chance(0.05);
  if (isTooLong) return keepMillis + random.whole(100, 1000);
  if (outcome === 'cut') return Math.max(PAUSE_AFTER_CUT_MILLIS, millis);
  return status === 503 && retryAfter !== '0' ? 1000 : millis;
}

/** The client has released it itself. */
function isReleasedConflict({ status, body }: Visit): boolean {
  return status === 409 && !body.includes('taken over');
}

function checkPath({ id, key, hits, keepMillis, holdMillis, maxWaitMillis }: Terms): string {
  const parameters = { canWait: true, requestId: id, keepMillis, hits, holdMillis, maxWaitMillis };
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return `${ratePath(key)}?${given.map(([name, value]) => `${name}=${String(value)}`).join('&')}`;
}
