import type { Clock } from '../common/clock.js';
import type { Readiness } from './readiness.js';

/** As long as the probes in `deploy` and `k8s` wait. A scrape that took longer would lose all metrics. */
const PATIENCE_MILLIS = 2000;

/** Whether this replica is ready, as a probe of `/readyz` sees it: not if the answer is late or an error. */
export function isReadySoon(readiness: Readiness, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(PATIENCE_MILLIS, () => resolve(false));
    const settle = (isReady: boolean): void => {
      cancel();
      resolve(isReady);
    };
    readiness.assess().then(
      ({ reasons }) => settle(reasons.length === 0),
      () => settle(false),
    );
  });
}
