import { describeRequestIds } from '../../support/behaviour/request-ids.js';
import {
  createMemoryHarness,
  overHttp,
  redisHarnessFactory,
} from '../../support/limiter-harness.js';
import { useRedis } from '../../support/use-redis.js';

const createRedisHarness = redisHarnessFactory(useRedis());

describeRequestIds('the embedded limiter', createMemoryHarness, 'direct');
describeRequestIds('the embedded limiter over HTTP', overHttp(createMemoryHarness), 'http');
describeRequestIds('the Redis limiter', createRedisHarness, 'direct');
describeRequestIds('the Redis limiter over HTTP', overHttp(createRedisHarness), 'http');
