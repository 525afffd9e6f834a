import type { Clock } from '../../common/clock.js';
import type { Withdrawals } from './withdrawals.js';

/** A check whose call failed and may have run: its request may have a place that is kept. */
export interface FailedCheck {
  readonly key: string;
  /** Of the key's state in Redis. */
  readonly name: string;
  readonly claim: string;
  readonly keepMillis: number;
  /** How long its approval is held at most. */
  readonly holdMillis: number;
}

export interface LaterWithdrawalsParts {
  readonly withdrawals: Pick<Withdrawals, 'add'>;
  /** Whether the shard of a name in Redis is up, as far as is known. */
  readonly isAvailable: (name: string) => boolean;
  readonly clock: Clock;
}

/**
 * Withdraws the requests of failed checks when their places have been kept for their time. That time begins again when
 * Redis is up again: their callers could not come back before.
 */
export class LaterWithdrawals {
  /** With what cancels its timer. */
  readonly #kept = new Map<FailedCheck, () => void>();

  constructor(private readonly parts: LaterWithdrawalsParts) {}

  add(check: FailedCheck): void {
    this.#kept.get(check)?.();
    const cancel = this.parts.clock.after(check.keepMillis, () => {
      this.#withdraw(check);
    });
    this.#kept.set(check, cancel);
  }

  onStoreAvailable(): void {
    for (const check of [...this.#kept.keys()]) {
      if (this.parts.isAvailable(check.name)) this.add(check);
    }
  }

  /** Places stay for their time without this replica. */
  close(): void {
    for (const cancel of this.#kept.values()) cancel();
    this.#kept.clear();
  }

  #withdraw(check: FailedCheck): void {
    if (!this.parts.isAvailable(check.name)) return;
    this.#kept.delete(check);
    this.parts.withdrawals.add(check.key, [check.claim], check.holdMillis);
  }
}
