import { redisHarnessFactory } from '../../support/limiter-harness.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

/** How many connections all limiters of the harness have. */
async function connectionsOfLimiters(): Promise<number> {
  const clients = (await redis.client.client('LIST')) as string;
  return clients.split('\n').filter((client) => client.includes(' name=test ')).length;
}

test('a limiter that is closed leaves no connection', async () => {
  const limits = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 1 };
  const harness = await redisHarnessFactory(redis)(limits);
  expect(await connectionsOfLimiters()).toBeGreaterThan(0);
  await harness.close();
  await until(async () => (await connectionsOfLimiters()) === 0);
});
