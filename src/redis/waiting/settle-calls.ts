import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../limiter/errors.js';
import type { KeyNames } from '../shared/key-names.js';
import type { KnownWindow, SettleReply, Ticket } from '../scripts/settle-codec.js';
import { BatchedCalls, type CallsParts } from './batched-calls.js';
import type { Lease } from './leases.js';
import type { LocalWaiters } from './local-waiters.js';
import type { WaitingStore } from '../scripts/scripts.js';

/** The most waiters that one call asks about. */
const MAX_ASKED_PER_CALL = 500;
/** The most settle calls under way at a time. Together they take Redis a millisecond, between checks. */
const MAX_UNDER_WAY = 16;

export interface SettleCallsParts {
  readonly names: KeyNames;
  readonly store: Pick<WaitingStore, 'settle'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** This replica's, for the key. */
  readonly lease: Lease;
  /** Withdraws requests for which nobody here waits any more. */
  readonly withdraw: (claims: readonly string[], longestHoldMillis: number) => void;
}

/**
 * The settle calls of one key, one at a time. Each asks about the doubted places with the lowest tickets,
 * and renews the lease.
 */
export class SettleCalls {
  /** The error of the last call, if that failed. */
  failure: unknown;
  /** Resolves when the call under way has ended; undefined if there is none. */
  underWay: Promise<SettleReply | undefined> | undefined;
  #withdrawAfterwards: string[] = [];
  /** The waiters that were told of an approval during the call under way, and when Redis gave it. */
  readonly #toldMeanwhile = new Map<string, number>();
  /** Settles when the last failed call has ended; undefined if it has. */
  #ending: Promise<unknown> | undefined;

  constructor(
    private readonly waiters: LocalWaiters,
    private readonly parts: SettleCallsParts,
  ) {}

  /**
   * Calls the script, and doubts the places that Redis may have dropped.
   * @param known of a key that Redis may have lost
   * @returns undefined if the call failed
   */
  settle(known: KnownWindow): Promise<SettleReply | undefined> {
    this.underWay = this.#settle(known);
    return this.underWay;
  }

  /**
   * A waiter is told of its approval. A call under way that asks about it puts it back if the hold has lapsed by then, or
   * Redis has lost the approval.
   * @param at when it was approved, by Redis's clock; undefined if that is not known
   */
  told(claim: string, at: number | undefined): void {
    if (this.underWay && at !== undefined) this.#toldMeanwhile.set(claim, at);
  }

  /**
   * Withdraws at once, or after the call under way, which may put back the waiters it asks about. A call that has failed
   * may do so until it has ended.
   */
  withdraw(claims: readonly string[]): void {
    if (claims.length === 0) return;
    if (this.underWay) {
      this.#withdrawAfterwards.push(...claims);
      return;
    }
    const withdraw = (): void => this.parts.withdraw(claims, this.waiters.longestHoldMillis);
    withdraw();
    void this.#ending?.then(withdraw);
  }

  async #settle(known: KnownWindow): Promise<SettleReply | undefined> {
    const { clock, lease } = this.parts;
    const sentAt = clock.now();
    const hadLapsed = lease.mayHaveLapsed(sentAt);
    if (hadLapsed) this.waiters.doubtAll();
    this.#toldMeanwhile.clear();
    const reply = await this.#call(known, this.waiters.takeDoubted(MAX_ASKED_PER_CALL));
    this.underWay = undefined;
    this.withdraw([...this.#withdrawAfterwards.splice(0), ...this.#putBackForNobody(reply)]);
    if (!reply) {
      this.waiters.doubtAll();
      return undefined;
    }
    // A slow call may have reached Redis after the end of the lease.
    if (!hadLapsed && lease.mayHaveLapsed(clock.now())) this.waiters.doubtAll();
    lease.settled(sentAt);
    return reply;
  }

  async #call(known: KnownWindow, askedAbout: readonly Ticket[]): Promise<SettleReply | undefined> {
    try {
      const reply = await this.parts.store.settle(this.parts.names, known, askedAbout);
      this.failure = undefined;
      return reply;
    } catch (error) {
      if (this.failure === undefined) {
        // The breaker logs that the store is down. A line for every key would say nothing new.
        const level = error instanceof StoreUnavailableError ? 'debug' : 'warn';
        const { state } = this.parts.names;
        this.parts.logger[level]({ err: error, state }, 'settle failed; its waiters keep waiting');
      }
      this.failure = error;
      this.#awaitEnd(error);
      return undefined;
    }
  }

  /** Those that were put back after the approval of which they had been told, and not approved again and told of that. */
  #putBackForNobody(reply: SettleReply | undefined): string[] {
    if (!reply) return [];
    return reply.putBack.filter((id) => (this.#toldMeanwhile.get(id) ?? Infinity) < reply.at);
  }

  #awaitEnd(error: unknown): void {
    if (!(error instanceof StoreUnavailableError) || !error.ended) return;
    const ending = (this.#ending = error.ended.then(() => {
      if (this.#ending === ending) this.#ending = undefined;
    }));
  }
}

/** A queue that needs a settle call. */
export interface Unsettled {
  readonly names: Pick<KeyNames, 'state'>;
  /** Its turn has come. Resolves when the call has ended and its reply is processed. */
  settle(): Promise<void>;
  /** Its turn has come, but the store is known to be down. */
  notAsked(): void;
}

/** The line in which the queues of this replica wait for their settle calls. */
export type SettleLine = BatchedCalls<Unsettled>;

/** Makes a line. It is mostly empty. After an outage tens of thousands of keys need a settle at once. */
export function settleLine({
  clock,
  isAvailable,
  observer,
}: Pick<CallsParts, 'clock' | 'isAvailable' | 'observer'>): SettleLine {
  return new BatchedCalls({
    clock,
    mostUnderWay: MAX_UNDER_WAY,
    isAvailable: ({ names }) => isAvailable(names.state),
    onNotAsked: (queue) => queue.notAsked(),
    call: ([queue]) => queue.settle(),
    onUndone: (undone) => observer.catchingUp('settle', undone),
  });
}
