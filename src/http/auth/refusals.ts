import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';

const INTERVAL_MILLIS = 1000;

/** Why a request is refused for its token. */
export type RefusalReason =
  'token_required' | 'token_unknown' | 'scope_missing' | 'key_not_allowed';

/** Counts the requests that are refused for their tokens, and logs them: one line a second with how many, and why. */
export class Refusals {
  /** All of them, by reason. */
  readonly counts: Record<RefusalReason, number> = {
    token_required: 0,
    token_unknown: 0,
    scope_missing: 0,
    key_not_allowed: 0,
  };
  #unlogged: Partial<Record<RefusalReason, number>> = {};
  /** Runs for a second after each line. */
  #cancelTimer: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  note(reason: RefusalReason): void {
    this.counts[reason] += 1;
    this.#unlogged[reason] = (this.#unlogged[reason] ?? 0) + 1;
    if (!this.#cancelTimer) this.#log();
  }

  /** Logs those of the last second. */
  close(): void {
    this.#cancelTimer?.();
    this.#log();
    this.#cancelTimer?.();
  }

  #log(): void {
    this.#cancelTimer = undefined;
    const refused = this.#unlogged;
    if (Object.keys(refused).length === 0) return;
    this.logger.warn({ refused }, 'requests refused for their tokens');
    this.#unlogged = {};
    this.#cancelTimer = this.clock.after(INTERVAL_MILLIS, () => {
      this.#log();
    });
  }
}
