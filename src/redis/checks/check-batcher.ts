import { StoreUnavailableError } from '../../limiter/errors.js';
import {
  type CheckOrder,
  type CheckRequest,
  isPlain,
  type Quota,
  type RequestTrace,
} from '../../limiter/limiter.js';
import { hasSettableWindow } from '../../limiter/limits.js';
import type { Clock } from '../../common/clock.js';
import type { Ticks } from '../../common/ticks.js';
import { answerBatch, type CheckReply, failBatch, type PendingCheck } from './check-replies.js';
import { groupBy, RecentValues } from '../../common/collections.js';
import type { KeyNaming } from '../shared/key-names.js';
import type { CheckBatch, KeyAssumption, KnownWaiting } from '../scripts/check-codec.js';
import type { Scripts } from '../scripts/scripts.js';
import type { StoreObserver } from '../shared/store-observer.js';

/** A larger call would block other callers of Redis for too long. */
const MAX_CHECKS_PER_CALL = 100;
/**
 * The same for ordered checks that have waited for earlier checks of their key. The calls of a key follow one another,
 * and Redis takes as long for these checks as for as many of several keys.
 */
const MAX_POSTPONED_PER_CALL = 500;
/**
 * Redis decides one call while this replica prepares the next. With one call for all keys of a tick, Redis and the
 * replica would wait for each other: a fifth fewer decisions a second.
 */
const MAX_KEYS_PER_CALL = 16;
/** The most keys in each of the two generations. */
const KEPT_KEYS = 10_000;
/** A call takes so long to reach Redis if nothing is slow. */
const LEAST_MARGIN_MILLIS = 3;

export interface CheckBatcherParts {
  readonly scripts: Pick<Scripts, 'check'>;
  readonly naming: Pick<KeyNaming, 'namesOf'>;
  readonly observer: Pick<StoreObserver, 'batched'>;
  readonly ticks: Ticks;
  readonly clock: Pick<Clock, 'now'>;
  /** The primary that has a name. All names of a call are on one primary. */
  readonly shardOf: (name: string) => string;
  /** The waiters of a key on this replica, if there are any. */
  readonly waitingFor: (key: string) => KnownWaiting | undefined;
}

/** The window of a key, as Redis said. */
interface KeyWindow {
  endsAt: number;
  /** False in a window in which an assumption about the key was wrong. */
  mayAssume: boolean;
}

/** A key, and what a call assumes of it. */
interface AssumedKey {
  readonly key: string;
  /** `unknown` to begin with */
  assumption: KeyAssumption;
  /** When the key's window ends, or ended, as far as is known; 0 to begin with. */
  windowEndsAt: number;
  /** Undefined to begin with. */
  known: KeyWindow | undefined;
}

/** A batch that may still grow. */
interface PendingBatch extends CheckBatch, AssumedKey {
  waiting: KnownWaiting | undefined;
  assumption: KeyAssumption;
  arePlain: boolean;
  /** No other batch of this call has the same key. */
  isAlone: boolean;
  /** Those that its checks have; undefined if none has one. */
  orders: Set<CheckOrder> | undefined;
  readonly checks: PendingCheck[];
  traces: RequestTrace[] | undefined;
}

/** The checks of a key with one order. */
interface OrderedKey {
  /** How many batches with such checks are under way. */
  underWay: number;
  /** The batches that follow when these are answered, in their order. They have no other checks. */
  postponed: PendingBatch[] | undefined;
}

/**
 * Sends the checks that arrive in the same tick of the event loop together: the checks of one key as one
 * batch, all batches as one script call. No check waits for others: the end of the tick sends all that
 * have come, each key's checks in the order they came. In a cluster there is a call for each primary.
 *
 * Checks with an order are the exception: they wait for the answers to earlier checks of their key with the same order.
 * Otherwise a call that has to be sent again would come after calls that were sent later.
 *
 * A batch of 64 checks costs Redis a fifteenth of 64 calls, and the replica one command. If each check has a key of its
 * own, shared calls allow a third more decisions a second.
 */
export class CheckBatcher {
  /** In the order of their first checks. */
  #batches: PendingBatch[] = [];
  /**
   * The last batch of each key, the only one that may still grow. Each call has a new map: the table that `clear`
   * discards refers to the table that replaces it. Once the first table is old, V8 promotes each later one to the old
   * generation, with all requests that it refers to, until the next major collection: up to half of the time of a check.
   */
  #latest = new Map<string, PendingBatch>();
  #checks = 0;
  /** In a cluster the keys of a tick go to several primaries. Their number is taken from the last calls. */
  #mostKeys = MAX_KEYS_PER_CALL;
  #flushIsDue = false;
  readonly #windows = new KnownWindows();

  constructor(private readonly parts: CheckBatcherParts) {}

  /**
   * Asks Redis for a decision, and calls one of the callbacks, once. They must not throw.
   * @param number of the check, if its caller has chosen the request id
   */
  check(
    request: CheckRequest,
    requestId: string,
    onReply: (reply: CheckReply) => void,
    onFailed: (error: Error) => void,
    number?: number,
  ): void {
    const check = { request, requestId, number, onReply, onFailed };
    const latest = this.#latest.get(request.key);
    const grows = latest && takes(latest, request) ? latest : undefined;
    // The flush may send the batch of this key, so the ordered checks are looked up after it.
    if (!grows && this.#batches.length >= this.#mostKeys) this.#flush();
    const before = request.order && keysOf(request.order)?.get(request.key);
    if (before) {
      this.#postpone(before, request, check);
      return;
    }
    this.#flushAtEndOfTick();
    const batch = grows ?? this.#put(this.#newBatch(request));
    append(batch, request, check);
    this.#checks += 1;
    if (this.#checks >= MAX_CHECKS_PER_CALL) this.#flush();
  }

  #postpone(before: OrderedKey, request: CheckRequest, check: PendingCheck): void {
    const postponed = (before.postponed ??= []);
    let batch = postponed.at(-1);
    if (!batch || !takes(batch, request) || batch.checks.length >= MAX_POSTPONED_PER_CALL) {
      batch = this.#newBatch(request);
      postponed.push(batch);
    }
    append(batch, request, check);
  }

  #flushAtEndOfTick(): void {
    if (this.#flushIsDue) return;
    this.#flushIsDue = true;
    this.parts.ticks.next(() => {
      this.#flushIsDue = false;
      if (this.#checks > 0) this.#flush();
    });
  }

  #put(batch: PendingBatch): PendingBatch {
    const latest = this.#latest.get(batch.key);
    if (latest) latest.isAlone = batch.isAlone = false;
    this.#batches.push(batch);
    this.#latest.set(batch.key, batch);
    return batch;
  }

  #newBatch(request: CheckRequest): PendingBatch {
    const { key, maxRequests, maxRequestsInQueue, windowMillis } = request;
    return {
      key,
      names: this.parts.naming.namesOf(key),
      overrides: { maxRequests, maxRequestsInQueue, windowMillis },
      waiting: undefined,
      assumption: 'unknown',
      windowEndsAt: 0,
      known: undefined,
      arePlain: true,
      isAlone: true,
      orders: undefined,
      checks: [],
      traces: undefined,
    };
  }

  #flush(): void {
    const batches = this.#batches;
    const now = this.parts.clock.now();
    for (const batch of batches) {
      // As late as possible: a ticket may have come while the batch grew.
      batch.waiting = this.parts.waitingFor(batch.key);
      if (batch.arePlain && batch.isAlone && !batch.waiting) this.#windows.assume(batch, now);
      if (batch.orders) this.#isSent(batch.orders, batch.key);
    }
    this.#batches = [];
    this.#latest = new Map();
    this.parts.observer.batched(this.#checks);
    this.#checks = 0;
    const calls = groupBy(byAssumption(batches), ({ names }) => this.parts.shardOf(names.state));
    this.#mostKeys = calls.length * MAX_KEYS_PER_CALL;
    for (const call of calls) void this.#call(call, now);
  }

  /** @param sentAt by the clock, no later than Redis is asked */
  async #call(batches: readonly PendingBatch[], sentAt: number): Promise<void> {
    try {
      const replies = await this.parts.scripts.check(batches);
      const now = this.parts.clock.now();
      this.#windows.tookMillis(now - sentAt);
      for (const [i, batch] of batches.entries()) {
        const reply = replies[i];
        if (batch.arePlain && batch.isAlone && reply && !(reply instanceof Error)) {
          const { millisToRoom, quota, neededAllNames = false } = reply;
          if (mayBeBare(quota)) {
            this.#windows.learn(batch, sentAt + millisToRoom, neededAllNames, now);
          } else this.#windows.forget(batch.key);
        }
        answerBatch(batch.checks, reply, now - sentAt);
        if (batch.orders) this.#isAnswered(batch.orders, batch.key);
      }
    } catch (error) {
      for (const batch of batches) {
        failBatch(batch.checks, error as Error);
        if (batch.orders) this.#isAnswered(batch.orders, batch.key, error);
      }
    }
  }

  #isSent(orders: Iterable<CheckOrder>, key: string): void {
    for (const order of orders) {
      const keys = keysOf(order) ?? new Map<string, OrderedKey>();
      order.state = keys;
      const ordered = keys.get(key);
      if (ordered) ordered.underWay += 1;
      else keys.set(key, { underWay: 1, postponed: undefined });
    }
  }

  /** @param error of the failed call. The checks that follow also fail: each might take as long to fail. */
  #isAnswered(orders: Iterable<CheckOrder>, key: string, error?: unknown): void {
    for (const order of orders) {
      const keys = keysOf(order);
      const ordered = keys?.get(key);
      if (!keys || !ordered) continue;
      const { postponed } = ordered;
      if (error !== undefined && postponed) {
        ordered.postponed = undefined;
        const notAsked =
          error instanceof StoreUnavailableError
            ? new StoreUnavailableError({ cause: error })
            : error;
        for (const batch of postponed) failBatch(batch.checks, notAsked as Error);
      }
      ordered.underWay -= 1;
      if (ordered.underWay > 0) continue;
      const next = ordered.postponed?.shift();
      if (next) this.#send(next);
      else keys.delete(key);
    }
  }

  /** Sends a batch that was postponed, together with the other checks of this tick. */
  #send(batch: PendingBatch): void {
    if (this.#batches.length >= this.#mostKeys) this.#flush();
    this.#flushAtEndOfTick();
    this.#put(batch);
    this.#checks += batch.checks.length;
    if (this.#checks >= MAX_CHECKS_PER_CALL) this.#flush();
  }
}

/**
 * By key, what an order has under way. A map of all orders in the batcher would be old, and its discarded tables would
 * promote what the next ones refer to, as for `#latest`: half of the time of a bulk request.
 */
function keysOf(order: CheckOrder): Map<string, OrderedKey> | undefined {
  return order.state as Map<string, OrderedKey> | undefined;
}

/** Whether a check may join a batch. */
function takes({ overrides }: PendingBatch, request: CheckRequest): boolean {
  return (
    overrides.maxRequests === request.maxRequests &&
    overrides.maxRequestsInQueue === request.maxRequestsInQueue &&
    overrides.windowMillis === request.windowMillis
  );
}

function append(batch: PendingBatch, request: CheckRequest, check: PendingCheck): void {
  if (!isPlain(request)) batch.arePlain = false;
  if (request.order) (batch.orders ??= new Set()).add(request.order);
  if (request.trace) (batch.traces ??= []).push(request.trace);
  batch.checks.push(check);
}

/** Whether a key with these limits may be bare, see `lua/check.lua`. */
function mayBeBare({ limits: [own, ...further] }: Quota): boolean {
  return hasSettableWindow(own) && further.length === 0;
}

/** In the order that a call needs. */
const ASSUMPTIONS: readonly KeyAssumption[] = ['inWindow', 'newWindow', 'unknown'];

/** Sorts them by their assumptions. Nothing else depends on the order of the keys of a call. */
function byAssumption(batches: readonly PendingBatch[]): readonly PendingBatch[] {
  const [first] = batches;
  if (batches.every(({ assumption }) => assumption === first?.assumption)) return batches;
  return ASSUMPTIONS.flatMap((wanted) => batches.filter(({ assumption }) => assumption === wanted));
}

/**
 * Remembers when the windows of recently checked keys end. An assumption may be wrong: another replica's request may have
 * changed the key in the meantime.
 */
class KnownWindows {
  readonly #windows = new RecentValues<KeyWindow>(KEPT_KEYS);
  #marginMillis = LEAST_MARGIN_MILLIS;

  /** Learns how long calls take at present. An assumption has to be right when the next call reaches Redis. */
  tookMillis(millis: number): void {
    this.#marginMillis = Math.max(LEAST_MARGIN_MILLIS, millis);
  }

  /** Assumes what it can of a key that is checked now. After a wrong assumption it waits for the next window. */
  assume(assumed: AssumedKey, now: number): void {
    const known = this.#windows.get(assumed.key);
    if (!known) return;
    assumed.known = known;
    assumed.windowEndsAt = known.endsAt;
    if (now + this.#marginMillis >= known.endsAt) assumed.assumption = 'newWindow';
    else if (known.mayAssume) assumed.assumption = 'inWindow';
  }

  /** Nothing can be assumed of a key. */
  forget(key: string): void {
    this.#windows.delete(key);
  }

  /**
   * Learns from the reply to a call.
   * @param assumed as the call was sent
   * @param endsAt when the key's window ends
   * @param neededAllNames whether too much was assumed of the key
   * @param now all times are by the clock of `assume`
   */
  learn(assumed: Readonly<AssumedKey>, endsAt: number, neededAllNames: boolean, now: number): void {
    const { key } = assumed;
    const known = assumed.known ?? this.#windows.get(key);
    const mayAssume = wasRight(assumed, neededAllNames, now) ?? known?.mayAssume ?? true;
    if (known) {
      known.endsAt = endsAt;
      known.mayAssume = mayAssume;
    } else this.#windows.set(key, { endsAt, mayAssume });
  }
}

/** Whether the assumption was right; undefined if the call did not show it. */
function wasRight(
  { assumption, windowEndsAt }: Readonly<AssumedKey>,
  neededAllNames: boolean,
  now: number,
): boolean | undefined {
  if (assumption === 'unknown') return undefined;
  if (!neededAllNames) return true;
  // The window of any key may end while the call is on its way.
  const hasEnded = assumption === 'inWindow' && windowEndsAt <= now;
  return hasEnded ? undefined : false;
}
