import { LIMITER_BEHAVIOURS } from '../../support/behaviour/limiter-behaviours.js';
import { createMemoryHarness, redisHarnessFactory } from '../../support/limiter-harness.js';
import { useRedis } from '../../support/use-redis.js';

const createRedisHarness = redisHarnessFactory(useRedis());

for (const describeBehaviour of LIMITER_BEHAVIOURS) {
  describeBehaviour('the embedded limiter', createMemoryHarness);
  describeBehaviour('the Redis limiter', createRedisHarness);
}
