import { createMemoryHarness, overHttp, redisHarnessFactory } from '../support/limiter-harness.js';
import { useRedis } from '../support/use-redis.js';
import { describeLimiter } from './limiter-behaviour.js';

const redis = useRedis();
const createRedisHarness = redisHarnessFactory(redis);

describeLimiter('the embedded limiter', createMemoryHarness, 'direct');
describeLimiter('the Redis limiter', createRedisHarness, 'direct');
describeLimiter('the embedded limiter over HTTP', overHttp(createMemoryHarness), 'http');
describeLimiter('the Redis limiter over HTTP', overHttp(createRedisHarness), 'http');
