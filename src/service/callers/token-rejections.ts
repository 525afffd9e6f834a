import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { FrequentLog } from '../../common/frequent-log.js';

/** Why a request is rejected for its token. */
export type RejectionReason =
  'token_required' | 'token_unknown' | 'scope_missing' | 'key_not_allowed';

/**
 * Counts the requests that are rejected for their tokens, and logs them: one line a second with the counts by reason.
 */
export class TokenRejections {
  /** Since the start, by reason. */
  readonly counts: Record<RejectionReason, number> = {
    token_required: 0,
    token_unknown: 0,
    scope_missing: 0,
    key_not_allowed: 0,
  };
  readonly #log: FrequentLog<RejectionReason>;

  constructor(clock: Clock, logger: Logger) {
    this.#log = new FrequentLog(clock, (rejected) => {
      logger.warn({ rejected }, 'requests rejected for their tokens');
    });
  }

  record(reason: RejectionReason): void {
    this.counts[reason] += 1;
    this.#log.note(reason);
  }

  /** Logs the rejections of the last second. */
  close(): void {
    this.#log.close();
  }
}
