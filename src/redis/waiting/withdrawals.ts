import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import type { Ticks } from '../../common/ticks.js';
import { backoffMillis } from '../backoff.js';
import type { KeyNaming } from '../key-names.js';
import type { WaitingStore } from './waiting-store.js';

/** The most ids of one call. */
const MAX_IDS_PER_CALL = 1000;
const FIRST_RETRY_MILLIS = 50;

export interface WithdrawalsParts {
  readonly store: Pick<WaitingStore, 'withdraw'>;
  readonly naming: Pick<KeyNaming, 'namesOf'>;
  readonly clock: Clock;
  readonly ticks: Ticks;
  readonly logger: Logger;
}

/**
 * Withdraws from Redis all for which nobody here waits any more: places in a queue, approvals that crossed
 * with their callers' disconnects, calls of unknown outcome. It tries again until Redis has done it.
 */
export class Withdrawals {
  #pending = new Map<string, Set<string>>();
  #flushing: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(private readonly parts: WithdrawalsParts) {}

  add(key: string, requestIds: readonly string[]): void {
    if (this.#isClosed) return;
    this.#keep(key, requestIds);
    // A retry that is due takes these along.
    if (!this.#cancelTimer) this.#flushing ??= this.#flushSoon();
  }

  /** Tries once more, then gives up: places end with their lease. */
  async close(): Promise<void> {
    this.#cancelRetry();
    await this.#flushing;
    this.#cancelRetry();
    if (this.#pending.size > 0) await this.#flush();
    this.#isClosed = true;
    if (this.#pending.size > 0) {
      this.parts.logger.warn({ keys: this.#pending.size }, 'withdrawals left to the leases');
    }
  }

  #keep(key: string, requestIds: readonly string[]): void {
    const kept = this.#pending.get(key) ?? new Set<string>();
    this.#pending.set(key, kept);
    for (const id of requestIds) kept.add(id);
  }

  /** Additions of one tick of the event loop share one call for each key. */
  async #flushSoon(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.parts.ticks.next(resolve);
    });
    await this.#flush();
    this.#flushing = undefined;
    if (this.#pending.size === 0 || this.#isClosed) return;
    // Either the call failed, or more has come meanwhile.
    const delay = this.#failures === 0 ? 0 : backoffMillis(this.#failures, FIRST_RETRY_MILLIS);
    this.#cancelTimer = this.parts.clock.after(delay, () => {
      this.#cancelTimer = undefined;
      this.#flushing ??= this.#flushSoon();
    });
  }

  #cancelRetry(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  async #flush(): Promise<void> {
    const withdrawals = [...this.#pending];
    // Not `clear`: see `#latest` in src/redis/check-batcher.ts.
    this.#pending = new Map();
    const results = await Promise.allSettled(
      withdrawals.map(([key, ids]) => this.#withdraw(key, [...ids])),
    );
    const failed = results.filter((result) => result.status === 'rejected');
    this.#failures = failed.length > 0 ? this.#failures + 1 : 0;
    if (this.#failures === 1) {
      this.parts.logger.warn(
        { err: failed[0]?.reason as unknown },
        'withdrawals will be tried again',
      );
    }
  }

  async #withdraw(key: string, ids: readonly string[]): Promise<void> {
    const names = this.parts.naming.namesOf(key);
    for (let first = 0; first < ids.length; first += MAX_IDS_PER_CALL) {
      try {
        await this.parts.store.withdraw(names, ids.slice(first, first + MAX_IDS_PER_CALL));
      } catch (error) {
        this.#keep(key, ids.slice(first));
        throw error;
      }
    }
  }
}
