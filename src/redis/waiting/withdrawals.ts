import type { Logger } from 'pino';

import type { Clock } from '../../clock.js';
import { backoffMillis } from '../backoff.js';
import type { KeyNaming } from '../key-names.js';
import type { Scripts } from '../scripts.js';

/** The most ids of one call of `lua/cancel.lua`. */
const MAX_IDS_PER_CALL = 1000;
const FIRST_RETRY_MILLIS = 50;

/**
 * Takes out of Redis what nobody here waits for any more: places in a queue, approvals that crossed
 * with their clients' leaving, calls of unknown outcome, leases. Repeated until Redis has heard it.
 */
export class Withdrawals {
  readonly #pending = new Map<string, Set<string>>();
  #flushing: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #failures = 0;

  /** @param holdsWaiters whether this replica still has waiters of a key */
  constructor(
    private readonly scripts: Scripts,
    private readonly naming: KeyNaming,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly holdsWaiters: (key: string) => boolean,
  ) {}

  /** Without ids: this replica no longer has waiters of the key. */
  add(key: string, ...requestIds: readonly string[]): void {
    const ids = this.#pending.get(key) ?? new Set<string>();
    this.#pending.set(key, ids);
    for (const id of requestIds) ids.add(id);
    // While a retry is due, it will take these along.
    if (!this.#cancelTimer) this.#flushing ??= this.#flushSoon();
  }

  /** Tries once more what is left, and gives up what can't be done: leases run out by themselves. */
  async close(): Promise<void> {
    this.#cancelRetry();
    await this.#flushing;
    if (this.#pending.size > 0) await this.#flush();
    this.#cancelRetry();
    if (this.#pending.size > 0) {
      this.logger.warn({ keys: this.#pending.size }, 'withdrawals left to the leases');
    }
  }

  /** What is added in one tick of the event loop goes in one call for each key. */
  async #flushSoon(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.#flush();
    this.#flushing = undefined;
    if (this.#pending.size === 0) return;
    // Either Redis did not hear it, or more has come meanwhile.
    const delay = this.#failures === 0 ? 0 : backoffMillis(this.#failures, FIRST_RETRY_MILLIS);
    this.#cancelTimer = this.clock.after(delay, () => {
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
    this.#pending.clear();
    const results = await Promise.allSettled(
      withdrawals.map(([key, ids]) => this.#cancel(key, [...ids])),
    );
    const failed = results.filter((result) => result.status === 'rejected');
    this.#failures = failed.length > 0 ? this.#failures + 1 : 0;
    if (this.#failures === 1) {
      this.logger.warn({ err: failed[0]?.reason as unknown }, 'withdrawals will be tried again');
    }
  }

  async #cancel(key: string, ids: readonly string[]): Promise<void> {
    const names = this.naming.namesOf(key);
    for (let first = 0; first === 0 || first < ids.length; first += MAX_IDS_PER_CALL) {
      const some = ids.slice(first, first + MAX_IDS_PER_CALL);
      const isLast = first + MAX_IDS_PER_CALL >= ids.length;
      try {
        await this.scripts.cancel(names, some, isLast && !this.holdsWaiters(key));
      } catch (error) {
        const kept = this.#pending.get(key) ?? new Set<string>();
        this.#pending.set(key, kept);
        for (const id of ids.slice(first)) kept.add(id);
        throw error;
      }
    }
  }
}
