import { describeAlgorithms, describeExtremes } from '../../support/behaviour/algorithms.js';
import { describeCalendars } from '../../support/behaviour/calendars.js';
import { describeFurtherLimits } from '../../support/behaviour/further-limits.js';
import { describeGroups } from '../../support/behaviour/groups.js';
import { describeHits } from '../../support/behaviour/hits.js';
import { describeHolders, describeHolds } from '../../support/behaviour/holds.js';
import { describeKeptPlaces } from '../../support/behaviour/kept-places.js';
import { describeLaneLimits } from '../../support/behaviour/lane-limits.js';
import { describeLimitedWaits } from '../../support/behaviour/limited-waits.js';
import { describeLimiter } from '../../support/behaviour/limiter-behaviour.js';
import { describePauses } from '../../support/behaviour/pauses.js';
import { describePeeks } from '../../support/behaviour/peeks.js';
import { describeRefunds, describeReports } from '../../support/behaviour/refunds.js';
import { describeRequestIds } from '../../support/behaviour/request-ids.js';
import { describeStatuses } from '../../support/behaviour/statuses.js';
import { describeWindowOverrides } from '../../support/behaviour/window-overrides.js';
import { createMemoryHarness, redisHarnessFactory } from '../../support/limiter-harness.js';
import { useRedis } from '../../support/use-redis.js';

/** The suites that every limiter has to pass. */
const LIMITER_BEHAVIOURS = [
  describeLimiter,
  describeLimitedWaits,
  describeHolds,
  describeHolders,
  describeHits,
  describePauses,
  describePeeks,
  describeRefunds,
  describeReports,
  describeStatuses,
  describeWindowOverrides,
  describeFurtherLimits,
  describeCalendars,
  describeAlgorithms,
  describeExtremes,
  describeGroups,
  describeLaneLimits,
  describeRequestIds,
  describeKeptPlaces,
];

const createRedisHarness = redisHarnessFactory(useRedis());

for (const describeBehaviour of LIMITER_BEHAVIOURS) {
  describeBehaviour('the embedded limiter', createMemoryHarness);
  describeBehaviour('the Redis limiter', createRedisHarness);
}
