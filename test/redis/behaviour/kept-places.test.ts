import { describeKeptPlaces } from '../../support/behaviour/kept-places.js';
import {
  createMemoryHarness,
  overHttp,
  redisHarnessFactory,
} from '../../support/limiter-harness.js';
import { useRedis } from '../../support/use-redis.js';

const createRedisHarness = redisHarnessFactory(useRedis());

describeKeptPlaces('the embedded limiter', createMemoryHarness, 'direct');
describeKeptPlaces('the embedded limiter over HTTP', overHttp(createMemoryHarness), 'http');
describeKeptPlaces('the Redis limiter', createRedisHarness, 'direct');
describeKeptPlaces('the Redis limiter over HTTP', overHttp(createRedisHarness), 'http');
