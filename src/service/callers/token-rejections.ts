import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { FrequentLog } from '../../common/frequent-log.js';

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
  readonly #log: FrequentLog<RefusalReason>;

  constructor(clock: Clock, logger: Logger) {
    this.#log = new FrequentLog(clock, (refused) => {
      logger.warn({ refused }, 'requests refused for their tokens');
    });
  }

  note(reason: RefusalReason): void {
    this.counts[reason] += 1;
    this.#log.note(reason);
  }

  /** Logs those of the last second. */
  close(): void {
    this.#log.close();
  }
}
