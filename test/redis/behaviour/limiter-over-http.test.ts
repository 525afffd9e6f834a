import { LIMITER_BEHAVIOURS } from '../../support/behaviour/limiter-behaviours.js';
import { IS_FULL } from '../../support/extent.js';
import {
  createMemoryHarness,
  overHttp,
  redisHarnessFactory,
} from '../../support/limiter-harness.js';
import { useRedis } from '../../support/use-redis.js';

const createRedisHarness = redisHarnessFactory(useRedis());

for (const describeBehaviour of LIMITER_BEHAVIOURS) {
  describeBehaviour('the Redis limiter over HTTP', overHttp(createRedisHarness), 'http');
  // HTTP treats all limiters alike, so this runs only at full extent.
  if (IS_FULL) {
    describeBehaviour('the embedded limiter over HTTP', overHttp(createMemoryHarness), 'http');
  }
}
