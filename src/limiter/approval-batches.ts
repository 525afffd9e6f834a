import type { Clock } from '../common/clock.js';
import type { Ticks } from '../common/ticks.js';
import { StoreUnavailableError } from './errors.js';
import type { Quota } from './limiter.js';
import type { Waiter } from './waiter.js';

/** The event loop writes this many answers in about a millisecond. */
const BATCH = 32;

/** What is told of an approval, or that its hold has lapsed. */
export type NotifiedWaiter = Pick<Waiter, 'approveFromQueue' | 'fail'>;

interface Approval {
  readonly waiter: NotifiedWaiter;
  readonly release: () => void;
  readonly quota: Quota | undefined;
  readonly heldUntil: number;
}

/**
 * Notifies waiters that their turn has come: at once, but at most a batch of them in one tick of the event loop. When
 * thousands are approved together, the first are answered before the last are notified, and other requests come in
 * between. Without batches, 10,000 waiters blocked the event loop for hundreds of milliseconds.
 */
export class ApprovalBatches {
  #pending: Approval[] = [];
  #notifiedInThisTick = 0;
  readonly #onceAllNotified: (() => void)[] = [];

  constructor(
    private readonly ticks: Ticks,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  /**
   * @param release called if the waiter's caller has disconnected, or its hold has lapsed before it was notified
   * @param quota of the key's window, as far as it is known
   * @param heldUntil when its hold lapses, by the clock
   */
  approve(waiter: NotifiedWaiter, release: () => void, quota?: Quota, heldUntil = Infinity): void {
    this.#pending.push({ waiter, release, quota, heldUntil });
    if (this.#notifiedInThisTick === 0) this.#continueNextTick();
    if (this.#notifiedInThisTick < BATCH) this.#notify(1);
  }

  /** Resolves when all approved waiters have been notified. */
  async allNotified(): Promise<void> {
    if (this.#pending.length === 0) return;
    await new Promise<void>((resolve) => this.#onceAllNotified.push(resolve));
  }

  #continueNextTick(): void {
    this.ticks.next(() => {
      this.#notifiedInThisTick = 0;
      if (this.#pending.length === 0) return;
      this.#continueNextTick();
      this.#notify(BATCH);
    });
  }

  #notify(count: number): void {
    const batch = this.#pending.splice(0, count);
    this.#notifiedInThisTick += batch.length;
    for (const { waiter, release, quota, heldUntil } of batch) {
      // Only if this process has stood still since.
      const hasLapsed = heldUntil <= this.clock.now();
      if (hasLapsed) waiter.fail(new StoreUnavailableError());
      if (hasLapsed || !waiter.approveFromQueue(quota)) release();
    }
    if (this.#pending.length === 0)
      for (const resolve of this.#onceAllNotified.splice(0)) resolve();
  }
}
