import { BOUNDS } from '../../limiter/bounds.js';
import { longestCountMillis } from '../../limiter/limits.js';
import type { KeyClaims } from '../scripts/several-keys.js';
import type { KeyNames } from '../shared/key-names.js';
import { BatchedCalls, type CallsParts } from './batched-calls.js';
import type { WaitingStore } from '../scripts/scripts.js';

/** The most ids of one call, and the most keys. Redis answers others between two calls. */
export const MAX_IDS_PER_CALL = 1000;
const MAX_KEYS_PER_CALL = 50;
/** A key takes as much of a call as this number of ids, even with fewer. */
const IDS_FOR_KEY = MAX_IDS_PER_CALL / MAX_KEYS_PER_CALL;
/** The most keys whose calls are under way at a time. In a cluster most calls are for one key. */
const MAX_KEYS_UNDER_WAY = 100;

interface WithdrawalsParts extends Omit<CallsParts, 'store'> {
  readonly store: Pick<WaitingStore, 'withdraw'>;
  /** Whether requests for the key wait here. They renew its lease, and with it every place of this replica. */
  readonly isWaitedFor: (key: string) => boolean;
}

/** The ids to withdraw of one key. */
interface Pending {
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

/** A check whose call failed and may have run: its request may have a place that is kept. */
interface FailedCheck {
  readonly key: string;
  readonly claim: string;
  readonly keepMillis: number;
  /** How long its approval is held at most. */
  readonly holdMillis: number;
}

/**
 * Withdraws everything from Redis for which nobody here waits any more: places in a queue, approvals that crossed with
 * their callers' disconnects, calls of unknown outcome. It retries until Redis has done it, or until it no longer
 * matters.
 */
export class Withdrawals {
  /** What Redis has not confirmed yet. */
  readonly #pending = new Map<string, Pending>();
  readonly #calls: BatchedCalls<Pending>;
  /** The number of ids that Redis has not confirmed. */
  #undone = 0;
  /** Since when Redis has answered every call; undefined after a call that failed or could not be sent. */
  #answeringSince: number | undefined;
  /** The checks whose places are still kept, with what cancels their timers. */
  readonly #kept = new Map<FailedCheck, () => void>();
  #isClosed = false;

  constructor(private readonly parts: WithdrawalsParts) {
    const { clock, ticks, slotOf, isAvailable, logger } = parts;
    this.#calls = new BatchedCalls({
      clock,
      ticks,
      groupOf: ({ names }) => slotOf(names.state),
      mostPerCall: MAX_IDS_PER_CALL,
      sizeOf: ({ ids }) => Math.min(Math.max(ids.size, IDS_FOR_KEY), MAX_IDS_PER_CALL),
      mostUnderWay: MAX_KEYS_UNDER_WAY,
      underWayCounts: 'items',
      isWanted: (pending) => {
        const matters = this.#matters(pending);
        if (!matters) this.#forget(pending);
        return matters;
      },
      isAvailable: ({ names }) => isAvailable(names.state),
      onNotAsked: () => {
        this.#answeringSince = undefined;
      },
      call: (keys) => this.#withdraw(keys),
      onFirstFailure: (failure) =>
        logger.warn({ err: failure }, 'withdrawals failed and will be retried'),
    });
  }

  /** @param holdMillis how long an approval of theirs is held at most */
  add(key: string, claims: readonly string[], holdMillis = BOUNDS.holdMillis.max): void {
    if (this.#isClosed) return;
    let pending = this.#pending.get(key);
    if (!pending) {
      const names = this.parts.naming.namesOf(key);
      pending = { names, ids: new Set(), addedAt: 0, holdMillis: 0, hasFailed: false };
      this.#pending.set(key, pending);
      this.#calls.add([pending]);
    }
    pending.addedAt = this.parts.clock.now();
    pending.holdMillis = Math.max(pending.holdMillis, holdMillis);
    pending.hasFailed = false;
    const before = pending.ids.size;
    for (const id of claims) pending.ids.add(id);
    this.#count(pending.ids.size - before);
  }

  /**
   * Withdraws the request of a failed check when its place has been kept for its time. That time begins again when Redis is
   * up again: the caller could not come back before.
   */
  addLater(check: FailedCheck): void {
    this.#kept.get(check)?.();
    const cancel = this.parts.clock.after(check.keepMillis, () => {
      if (!this.#canBeAsked(check)) return;
      this.#kept.delete(check);
      this.add(check.key, [check.claim], check.holdMillis);
    });
    this.#kept.set(check, cancel);
  }

  /** Redis is up again. */
  onStoreAvailable(): void {
    for (const check of [...this.#kept.keys()]) {
      if (this.#canBeAsked(check)) this.addLater(check);
    }
    this.#calls.retry();
  }

  /** Tries once more, then gives up, since places end with their lease. Those that are kept stay for their time. */
  async close(): Promise<void> {
    for (const cancel of this.#kept.values()) cancel();
    this.#kept.clear();
    await this.#calls.idle();
    this.#calls.retry();
    await this.#calls.idle();
    this.#isClosed = true;
    this.#calls.close();
    if (this.#pending.size > 0) {
      this.parts.logger.warn(
        { keys: this.#pending.size },
        'withdrawals given up; places end with their leases',
      );
    }
  }

  #canBeAsked({ key }: FailedCheck): boolean {
    return this.parts.isAvailable(this.parts.naming.namesOf(key).state);
  }

  #count(more: number): void {
    this.#undone += more;
    this.parts.observer.catchingUp('withdrawal', this.#undone);
  }

  /**
   * Whether a withdrawal can still change anything. One that was never sent always can: after a stall of the event loop
   * it may be old while its check has just run. An approval counts until its windows end, or its hold lapses, and a place
   * until the lease ends, which waiters of the same key renew. Calls from before the last outage may have run at its end, so these
   * times count from the moment when Redis was up again.
   */
  #matters({ names: { key }, addedAt, holdMillis, hasFailed }: Pending): boolean {
    if (!hasFailed || this.#answeringSince === undefined || this.parts.isWaitedFor(key))
      return true;
    const { limitsOf, leaseMillis, clock } = this.parts;
    const windows = limitsOf(key).limits.map(longestCountMillis);
    const longest = Math.max(...windows, leaseMillis, holdMillis);
    return clock.now() < Math.max(addedAt, this.#answeringSince) + longest;
  }

  #forget(pending: Pending): void {
    this.#pending.delete(pending.names.key);
    this.#count(-pending.ids.size);
  }

  async #withdraw(keys: readonly Pending[]): Promise<void> {
    const withdrawals = keys.map((pending): KeyClaims => {
      const ids = [...pending.ids];
      pending.ids = new Set(ids.slice(MAX_IDS_PER_CALL));
      return { names: pending.names, claims: ids.slice(0, MAX_IDS_PER_CALL) };
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
      const reply = replies[i];
      const { claims = [] } = withdrawals[i] ?? {};
      if (reply instanceof Error) this.#hasFailed(pending, claims, reply);
      else this.#hasWithdrawn(pending, claims.length);
    }
  }

  #hasWithdrawn(pending: Pending, count: number): void {
    this.#count(-count);
    // There are more than fit into a call, or some were added meanwhile.
    if (pending.ids.size > 0) this.#calls.add([pending]);
    else this.#pending.delete(pending.names.key);
  }

  #hasFailed(pending: Pending, claims: readonly string[], failure: Error): void {
    const added = pending.ids;
    pending.ids = new Set([...claims, ...added]);
    pending.hasFailed = added.size === 0;
    // Those that were added meanwhile may be the same.
    this.#count(pending.ids.size - claims.length - added.size);
    this.#calls.addLater([pending], failure);
  }
}
