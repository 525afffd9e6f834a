import { IS_FULL } from '../../support/extent.js';
import {
  createMemoryHarness,
  overHttp,
  redisHarnessFactory,
} from '../../support/limiter-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { describeFurtherLimits } from '../../support/behaviour/further-limits.js';
import { describeHits } from '../../support/behaviour/hits.js';
import { describeHolds } from '../../support/behaviour/holds.js';
import { describeLimitedWaits } from '../../support/behaviour/limited-waits.js';
import { describeLimiter } from '../../support/behaviour/limiter-behaviour.js';
import { describePauses } from '../../support/behaviour/pauses.js';
import { describeWindowOverrides } from '../../support/behaviour/window-overrides.js';

const redis = useRedis();
const createRedisHarness = redisHarnessFactory(redis);

for (const describeBehaviour of [describeLimiter, describeLimitedWaits, describeHolds]) {
  describeBehaviour('the embedded limiter', createMemoryHarness, 'direct');
  describeBehaviour('the Redis limiter', createRedisHarness, 'direct');
  describeBehaviour('the Redis limiter over HTTP', overHttp(createRedisHarness), 'http');
  // HTTP treats all limiters alike, so this runs only at full extent.
  if (IS_FULL) {
    describeBehaviour('the embedded limiter over HTTP', overHttp(createMemoryHarness), 'http');
  }
}

// Over HTTP these have tests of their own.
for (const describeBehaviour of [
  describeHits,
  describePauses,
  describeWindowOverrides,
  describeFurtherLimits,
]) {
  describeBehaviour('the embedded limiter', createMemoryHarness);
  describeBehaviour('the Redis limiter', createRedisHarness);
}
