import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { FrequentLog } from '../../common/frequent-log.js';
import type { FailureReason, Metrics } from '../../metrics/metrics.js';

/** Those that have lines of their own, when a store is lost or the service stops. */
const LOGGED_ELSEWHERE: ReadonlySet<FailureReason> = new Set([
  'store_unavailable',
  'shutting_down',
]);

/** Counts the checks that have a 503, and logs them: one line a second with how many, and why. */
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

  note(reason: FailureReason): void {
    this.metrics.failed(reason);
    if (!LOGGED_ELSEWHERE.has(reason)) this.#log.note(reason);
  }

  /** Logs those of the last second. */
  close(): void {
    this.#log.close();
  }
}
