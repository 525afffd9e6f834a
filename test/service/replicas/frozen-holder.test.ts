import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { send } from '../../support/http-client.js';
import { requestRate } from '../../support/rate-client.js';
import { asLimiterUser } from '../../support/redis-user.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const SHORT_HOLD = 'holdMillis=1000';
const LONG_HOLD = 'holdMillis=3600000';
const SETTINGS = {
  WINDOW_MILLIS: '3600000',
  MAX_REQUESTS: '1',
  // These tests are not about the speed of a busy machine.
  STORE_TIMEOUT_MILLIS: '30000',
};

const redis = useRedis();
const naming = new KeyNaming('sluice:');

const key = uniqueKey();
/** The replica that is frozen, and its connections to Redis. */
let frozen: ReplicaProcess;
let link: FaultProxy;
let other: ReplicaProcess;
beforeAll(async () => {
  link = await startFaultProxy(Number(new URL(redis.url).port));
  [frozen, other] = await Promise.all([
    startReplica({ ...SETTINGS, REDIS_URL: asLimiterUser(link.url) }),
    startReplica({ ...SETTINGS, REDIS_URL: redis.url }),
  ]);
});
afterAll(async () => {
  frozen.signal('SIGCONT');
  await killReplicas();
  link.stop();
});

const held = (): Promise<string[]> => redis.client.zrange(naming.namesOf(key).lapses, '0', '-1');

const holdOf = (requestId: string): Promise<string | null> =>
  redis.client.zscore(naming.namesOf(key).lapses, requestId);

/** Asks at the other replica until the hold of the frozen replica's client has lapsed. */
async function takeOver(): Promise<string> {
  let requestId = '';
  await until(async () => {
    const answer = await requestRate(other.url, key, LONG_HOLD).answer;
    requestId = answer.requestId ?? '';
    return answer.status === 200;
  });
  return requestId;
}

// Checks and waiters do not need a process: test/unit/redis judges what becomes of their approvals.
test('a hold that lapses while its replica stands still before it reads the answer to a renewal makes that an error', async () => {
  const { requestId } = await requestRate(frozen.url, key, LONG_HOLD).answer;
  const renew = (hold: string): ReturnType<typeof send> =>
    send(frozen.url, 'PUT', `/rate/${key}/${requestId}?${hold}`);
  // Loads the script, which takes an answer of Redis.
  expect((await renew(LONG_HOLD)).status).toBe(200);
  const before = await holdOf(requestId!);
  link.toClient.pause();
  const renewal = renew(SHORT_HOLD);
  // Redis has run the renewal, and the replica has not read the answer.
  await until(async () => (await holdOf(requestId!)) !== before);
  frozen.signal('SIGSTOP');
  link.toClient.pass();
  const second = await takeOver();
  frozen.signal('SIGCONT');
  expect((await renewal).status).toBe(503);
  expect(await held()).toEqual([second]);
});
