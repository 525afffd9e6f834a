import type { Clock } from '../common/clock.js';
import type { Readiness } from './readiness.js';

/** As long as the probes in `deploy` and `k8s` wait; a scrape that took longer would be lost with all of its metrics. */
const PATIENCE_MILLIS = 2000;

/** Whether requests should come here, as a probe of `/readyz` sees it: not while that answers late or with a fault. */
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
