import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { FrequentLog } from '../../common/frequent-log.js';
import type { FailureReason, Metrics } from '../../metrics/metrics.js';

/** Reasons with log lines of their own, about the loss of a store or the end of the service. */
const LOGGED_ELSEWHERE: ReadonlySet<FailureReason> = new Set([
  'store_unavailable',
  'shutting_down',
  'handed_over',
]);

/** Counts the checks that failed with a 503, and logs them: one line a second with the counts by reason. */
export class UndecidedChecks {
  readonly #log: FrequentLog<FailureReason>;

  constructor(
    private readonly metrics: Pick<Metrics, 'failed'>,
    clock: Clock,
    logger: Logger,
  ) {
    this.#log = new FrequentLog(clock, (undecided) => {
      logger.warn({ undecided }, 'checks not decided');
    });
  }

  record(reason: FailureReason): void {
    this.metrics.failed(reason);
    if (!LOGGED_ELSEWHERE.has(reason)) this.#log.note(reason);
  }

  /** Logs the checks of the last second. */
  close(): void {
    this.#log.close();
  }
}
