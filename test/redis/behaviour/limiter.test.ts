import { describeAlgorithms, describeExtremes } from '../../support/behaviour/algorithms.js';
import { describeGroups } from '../../support/behaviour/groups.js';
import { describeLaneLimits } from '../../support/behaviour/lane-limits.js';
import { LIMITER_BEHAVIOURS } from '../../support/behaviour/limiter-behaviours.js';
import { createMemoryHarness, redisHarnessFactory } from '../../support/limiter-harness.js';
import { useRedis } from '../../support/use-redis.js';

const createRedisHarness = redisHarnessFactory(useRedis());

const ALL = [
  ...LIMITER_BEHAVIOURS,
  describeAlgorithms,
  describeExtremes,
  describeGroups,
  describeLaneLimits,
];
for (const describeBehaviour of ALL) {
  describeBehaviour('the embedded limiter', createMemoryHarness, 'direct');
  describeBehaviour('the Redis limiter', createRedisHarness, 'direct');
}
