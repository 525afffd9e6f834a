import { createLimiter } from '../../../src/app/create-limiter.js';
import { parseSettings } from '../../../src/config/settings.js';
import { withoutRules } from '../../../src/rules/rules.js';
import { redisHarnessFactory } from '../../support/limiter-harness.js';
import { recordLog } from '../../support/recorded-log.js';
import { unobserved } from '../../support/unguarded.js';
import { uniqueKey } from '../../support/unique-key.js';
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

test('a limiter that is closed logs the failures of its last second', async () => {
  const settings = parseSettings({ REDIS_URL: redis.url, STORE_TIMEOUT_MILLIS: '100' });
  const { logger, lines } = recordLog();
  const rules = withoutRules(settings);
  const { limiter } = await createLimiter(settings, rules, 'replica', logger, unobserved);
  // Its connections may need longer than its timeout.
  await until(() =>
    limiter.ping().then(
      () => true,
      () => false,
    ),
  );
  // Longer than the test: the pause ends with the command below.
  await redis.client.client('PAUSE', 60_000, 'WRITE');
  // Their timers end side by side, so that no second can pass in between. A check that fails would be withdrawn.
  const failing = [
    limiter.ask('release', { key: uniqueKey(), requestId: 'id' }),
    limiter.ask('pause', { key: uniqueKey(), millis: 1 }),
  ];
  await Promise.all(failing.map((call) => expect(call).rejects.toThrow()));
  const failures = (): unknown[] =>
    lines.flatMap((line) => (line.msg === 'store call failed' ? [line.failures] : []));
  expect(failures()).toEqual([{ release: 1 }]);
  await redis.client.client('UNPAUSE');
  await limiter.close();
  expect(failures()).toEqual([{ release: 1 }, { pause: 1 }]);
});
