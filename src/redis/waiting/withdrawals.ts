import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import type { Ticks } from '../../common/ticks.js';
import { BOUNDS } from '../../limiter/bounds.js';
import type { LimitsOf } from '../../limiter/limiter.js';
import { longestCountMillis } from '../../limiter/limits.js';
import { backoffMillis } from '../shared/backoff.js';
import { groupBy } from '../../common/group-by.js';
import type { KeyNames, KeyNaming } from '../shared/key-names.js';
import type { KeyClaims } from '../scripts/several-keys.js';
import type { StoreObserver } from '../shared/store-observer.js';
import type { WaitingStore } from './waiting-store.js';

/** The most keys of one call, and the most ids. Redis answers others between two calls. */
const MAX_KEYS_PER_CALL = 50;
export const MAX_IDS_PER_CALL = 1000;
/** The most keys whose calls are under way at a time. In a cluster most calls are for one key. */
const MAX_KEYS_AT_A_TIME = 100;
const FIRST_RETRY_MILLIS = 50;

export interface WithdrawalsParts {
  readonly store: Pick<WaitingStore, 'withdraw'>;
  readonly naming: Pick<KeyNaming, 'namesOf'>;
  readonly slotOf: (name: string) => number;
  readonly limitsOf: LimitsOf;
  readonly leaseMillis: number;
  /** Whether the shard of a name in Redis is up, as far as is known. */
  readonly isAvailable: (name: string) => boolean;
  /** Whether requests for the key wait here. They renew its lease, and with it every place of this replica. */
  readonly isWaitedFor: (key: string) => boolean;
  readonly observer: Pick<StoreObserver, 'catchingUp'>;
  readonly clock: Clock;
  readonly ticks: Ticks;
  readonly logger: Logger;
}

/** The ids to withdraw of one key. */
interface Pending {
  readonly key: string;
  readonly names: KeyNames;
  /** Without those of a call under way. An id that is added while its call is under way is withdrawn a second time. */
  ids: Set<string>;
  /** By the clock, when the last id was added. */
  addedAt: number;
  /** The longest hold that one of their approvals may have. */
  holdMillis: number;
  /** All of them were part of a call that failed. */
  hasFailed: boolean;
}

/**
 * Withdraws everything from Redis for which nobody here waits any more: places in a queue, approvals that crossed with
 * their callers' disconnects, calls of unknown outcome. It retries until Redis has done it, or until it no longer
 * matters.
 *
 * An outage leaves tens of thousands of withdrawals. So a call takes many keys, few calls are under way at a time, and
 * all failed withdrawals wait for one timer.
 */
export class Withdrawals {
  /** What Redis has not confirmed yet. */
  readonly #pending = new Map<string, Pending>();
  /** What the next calls take, in the order of arrival. */
  #due = new Set<Pending>();
  /** What waits for the retry. */
  #failed = new Set<Pending>();
  /** The number of ids that Redis has not confirmed. */
  #undone = 0;
  #running: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  #failures = 0;
  /** Since when Redis has answered every call; undefined after a call that failed or could not be sent. */
  #answeringSince: number | undefined;
  #isClosed = false;

  constructor(private readonly parts: WithdrawalsParts) {}

  /** @param holdMillis how long an approval of theirs is held at most */
  add(key: string, claims: readonly string[], holdMillis = BOUNDS.holdMillis.max): void {
    if (this.#isClosed) return;
    let pending = this.#pending.get(key);
    if (!pending) {
      const names = this.parts.naming.namesOf(key);
      pending = { key, names, ids: new Set(), addedAt: 0, holdMillis: 0, hasFailed: false };
      this.#pending.set(key, pending);
      this.#due.add(pending);
    }
    pending.addedAt = this.parts.clock.now();
    pending.holdMillis = Math.max(pending.holdMillis, holdMillis);
    pending.hasFailed = false;
    this.#keep(pending, claims);
    this.#runSoon();
  }

  /** Redis is up again. */
  onStoreAvailable(): void {
    this.#retry();
  }

  /** Tries once more, then gives up, since places end with their lease. */
  async close(): Promise<void> {
    await this.#running;
    this.#retry();
    await this.#running;
    this.#isClosed = true;
    this.#cancelRetry?.();
    if (this.#pending.size > 0) {
      this.parts.logger.warn(
        { keys: this.#pending.size },
        'withdrawals given up; places end with their leases',
      );
    }
  }

  #keep(pending: Pending, claims: readonly string[]): void {
    const before = pending.ids.size;
    for (const id of claims) pending.ids.add(id);
    this.#undone += pending.ids.size - before;
  }

  #retry(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    for (const pending of this.#failed) this.#due.add(pending);
    this.#failed = new Set();
    this.#runSoon();
  }

  #runSoon(): void {
    if (this.#due.size > 0) this.#running ??= this.#run();
  }

  /** Additions of one tick of the event loop share their calls. */
  async #run(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.parts.ticks.next(resolve);
    });
    let reason: unknown;
    while (this.#due.size > 0) {
      const next = this.#takeDue();
      this.#tell();
      const results = await Promise.all(this.#calls(next).map((call) => this.#withdraw(call)));
      reason ??= results.find((result) => result !== undefined);
    }
    this.#tell();
    this.#running = undefined;
    this.#retryLater(reason);
  }

  /** @param reason the first failure of the calls since the last retry, if there was any */
  #retryLater(reason: unknown): void {
    if (this.#failed.size === 0) {
      this.#failures = 0;
      return;
    }
    this.#failures += 1;
    if (this.#failures === 1 && reason !== undefined) {
      this.parts.logger.warn({ err: reason }, 'withdrawals failed and will be retried');
    }
    const delay = backoffMillis(this.#failures, FIRST_RETRY_MILLIS);
    this.#cancelRetry ??= this.parts.clock.after(delay, () => {
      this.#retry();
    });
  }

  #takeDue(): Pending[] {
    const taken: Pending[] = [];
    for (const pending of this.#due) {
      if (taken.length === MAX_KEYS_AT_A_TIME) break;
      this.#due.delete(pending);
      if (!this.parts.isAvailable(pending.names.state)) this.#notAsked(pending);
      else if (this.#matters(pending)) taken.push(pending);
      else this.#forget(pending);
    }
    return taken;
  }

  /**
   * Whether a withdrawal can still change anything. One that was never sent always can: after a stall of the event loop
   * it may be old while its check has just run. An approval counts until its windows end, or its hold lapses, and a place
   * until the lease ends, which waiters of the same key renew. Calls from before the last outage may have run at its end, so these
   * times count from the moment when Redis was up again.
   */
  #matters({ key, addedAt, holdMillis, hasFailed }: Pending): boolean {
    if (!hasFailed || this.#answeringSince === undefined || this.parts.isWaitedFor(key))
      return true;
    const { limitsOf, leaseMillis, clock } = this.parts;
    const windows = limitsOf(key).limits.map(longestCountMillis);
    const longest = Math.max(...windows, leaseMillis, holdMillis);
    return clock.now() < Math.max(addedAt, this.#answeringSince) + longest;
  }

  #notAsked(pending: Pending): void {
    this.#answeringSince = undefined;
    this.#failed.add(pending);
  }

  #forget(pending: Pending): void {
    this.#undone -= pending.ids.size;
    this.#pending.delete(pending.key);
  }

  /** The calls for these keys, each with names of one slot. */
  #calls(keys: readonly Pending[]): Pending[][] {
    const calls: Pending[][] = [];
    for (const ofSlot of groupBy(keys, ({ names }) => this.parts.slotOf(names.state))) {
      let call: Pending[] = [];
      let ids = 0;
      for (const pending of ofSlot) {
        const more = Math.min(pending.ids.size, MAX_IDS_PER_CALL);
        if (call.length === MAX_KEYS_PER_CALL || ids + more > MAX_IDS_PER_CALL) {
          calls.push(call);
          call = [];
          ids = 0;
        }
        call.push(pending);
        ids += more;
      }
      calls.push(call);
    }
    return calls;
  }

  /** @returns the failure, if there was one */
  async #withdraw(keys: readonly Pending[]): Promise<unknown> {
    const withdrawals = keys.map((pending): KeyClaims => {
      const { names } = pending;
      return { names, claims: takeFirst(pending, MAX_IDS_PER_CALL) };
    });
    let replies: readonly (number | Error)[];
    try {
      replies = await this.parts.store.withdraw(withdrawals);
      this.#answeringSince ??= this.parts.clock.now();
    } catch (error) {
      replies = keys.map(() => error as Error);
      this.#answeringSince = undefined;
    }
    for (const [i, pending] of keys.entries()) {
      const { claims = [] } = withdrawals[i] ?? {};
      this.#undone -= claims.length;
      if (replies[i] instanceof Error) this.#hasFailed(pending, claims);
      // There are more than fit into a call, or some were added meanwhile.
      else if (pending.ids.size > 0) this.#due.add(pending);
      else this.#pending.delete(pending.key);
    }
    return replies.find((reply) => reply instanceof Error);
  }

  #hasFailed(pending: Pending, claims: readonly string[]): void {
    const later = [...pending.ids];
    this.#undone -= later.length;
    pending.ids = new Set();
    this.#keep(pending, [...claims, ...later]);
    pending.hasFailed = later.length === 0;
    this.#failed.add(pending);
  }

  #tell(): void {
    this.parts.observer.catchingUp('withdrawal', this.#undone);
  }
}

/** Takes the first ids to withdraw, in their order. */
function takeFirst(pending: Pending, most: number): string[] {
  const all = [...pending.ids];
  pending.ids = new Set(all.slice(most));
  return all.slice(0, most);
}
