import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../limiter/errors.js';
import type { KeyNames } from '../key-names.js';
import type { SettleReply, Ticket } from '../scripts/settle-codec.js';
import { Lease } from './lease.js';
import type { Places } from './places.js';
import type { WaitingStore } from './waiting-store.js';

/** The most waiters that one call asks about. */
const MAX_ASKED_PER_CALL = 500;

export interface SettleCallsParts {
  readonly names: KeyNames;
  readonly store: Pick<WaitingStore, 'settle'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly leaseMillis: number;
  /** After this time without a call another has to follow, which finds what renewals of the lease don't look at. */
  readonly lookAgainMillis: number;
  /** Withdraws requests for which nobody here waits any more. */
  readonly withdraw: (requestIds: readonly string[]) => void;
}

/**
 * The settle calls of one key, one at a time. Each asks about the doubted places with the lowest tickets,
 * and renews the lease.
 */
export class SettleCalls {
  readonly #lease: Lease;
  #settledAt = 0;
  #hasFailed = false;
  #failure: unknown;
  #underWay: Promise<SettleReply | undefined> | undefined;
  #withdrawAfterwards: string[] = [];

  constructor(
    private readonly places: Places,
    private readonly parts: SettleCallsParts,
  ) {
    this.#lease = new Lease(parts.leaseMillis);
  }

  /** Resolves when the call under way has ended; undefined where there is none. */
  get underWay(): Promise<unknown> | undefined {
    return this.#underWay;
  }

  /** When the lease has to be renewed, unless a call does so before. */
  get renewalDueAt(): number {
    return this.#lease.renewalDueAt;
  }

  /** With what the last call failed that did. */
  get failure(): unknown {
    return this.#failure;
  }

  /** A check sent at this time has begun the lease. */
  leaseBegan(sentAt: number): void {
    this.#lease.renewed(sentAt);
    this.#settledAt = sentAt;
  }

  /**
   * The lease was renewed by another call, sent at this time.
   * @returns whether a settle has to follow: the lease may have lapsed before, or the last settle is long ago
   */
  leaseRenewed(sentAt: number): boolean {
    const now = this.parts.clock.now();
    if (this.#lease.mayHaveLapsed(now)) return true;
    this.#lease.renewed(sentAt);
    return now >= this.#settledAt + this.parts.lookAgainMillis;
  }

  /**
   * Calls the script, and doubts the places that Redis may have dropped.
   * @param knownMillisLeft milliseconds until there is room, for a key that Redis lost
   * @returns undefined where the call failed
   */
  settle(knownMillisLeft: number): Promise<SettleReply | undefined> {
    this.#underWay = this.#settle(knownMillisLeft);
    return this.#underWay;
  }

  /** Withdraws at once, or after the call under way: that call may put back the waiters it asks about. */
  withdraw(requestIds: readonly string[]): void {
    if (requestIds.length === 0) return;
    if (this.#underWay) this.#withdrawAfterwards.push(...requestIds);
    else this.parts.withdraw(requestIds);
  }

  async #settle(knownMillisLeft: number): Promise<SettleReply | undefined> {
    const { clock } = this.parts;
    const sentAt = clock.now();
    const hadLapsed = this.#lease.mayHaveLapsed(sentAt);
    if (hadLapsed) this.places.doubtAll();
    const reply = await this.#call(knownMillisLeft, this.places.takeDoubted(MAX_ASKED_PER_CALL));
    this.#underWay = undefined;
    this.withdraw(this.#withdrawAfterwards.splice(0));
    if (!reply) {
      this.places.doubtAll();
      return undefined;
    }
    // A slow call may have reached Redis after the end of the lease.
    if (!hadLapsed && this.#lease.mayHaveLapsed(clock.now())) this.places.doubtAll();
    this.#lease.renewed(sentAt);
    this.#settledAt = sentAt;
    return reply;
  }

  async #call(
    knownMillisLeft: number,
    askedAbout: readonly Ticket[],
  ): Promise<SettleReply | undefined> {
    try {
      const reply = await this.parts.store.settle(this.parts.names, knownMillisLeft, askedAbout);
      this.#hasFailed = false;
      return reply;
    } catch (error) {
      this.#failure = error;
      if (!this.#hasFailed) this.#log(error);
      this.#hasFailed = true;
      return undefined;
    }
  }

  #log(error: unknown): void {
    // The breaker logs that the store is away. A line for every key would say no more.
    const level = error instanceof StoreUnavailableError ? 'debug' : 'warn';
    const { state } = this.parts.names;
    this.parts.logger[level]({ err: error, state }, 'settle failed; those who wait go on waiting');
  }
}
