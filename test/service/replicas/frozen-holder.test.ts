import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { send } from '../../support/http-client.js';
import { requestRate, waitingCount } from '../../support/rate-client.js';
import { asLimiterUser } from '../../support/redis-user.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const SHORT_HOLD_MILLIS = 1000;
const LONG_HOLD = 'holdMillis=3600000';
/** Below the time in which a call to Redis has to be answered. */
const ANSWER_DELAY_MILLIS = 400;
const SETTINGS = {
  WINDOW_MILLIS: '3600000',
  MAX_REQUESTS: '1',
  // These tests are not about the speed of a busy machine.
  STORE_TIMEOUT_MILLIS: '30000',
};

const redis = useRedis();
const naming = new KeyNaming('sluice:');

let key: string;
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
beforeEach(() => {
  key = uniqueKey();
});
afterEach(() => {
  frozen.signal('SIGCONT');
  link.toClient.pass();
});
afterAll(async () => {
  await killReplicas();
  link.stop();
});

const held = (): Promise<string[]> => redis.client.hkeys(naming.namesOf(key).holds);

const holdOf = (requestId: string): Promise<string | null> =>
  redis.client.hget(naming.namesOf(key).holds, requestId);

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

test('a waiter whose hold has lapsed while its replica stood still waits on, until others have released', async () => {
  const first = await requestRate(other.url, key, LONG_HOLD).answer;
  const waiter = requestRate(frozen.url, key, `canWait=true&holdMillis=${SHORT_HOLD_MILLIS}`);
  await until(async () => (await waitingCount(other.url, key)) === 1);

  frozen.signal('SIGSTOP');
  await send(other.url, 'DELETE', `/rate/${key}/${first.requestId}`);
  const second = await takeOver();
  frozen.signal('SIGCONT');

  await until(async () => (await waitingCount(other.url, key)) === 1);
  expect(await held()).toEqual([second]);
  await send(other.url, 'DELETE', `/rate/${key}/${second}`);
  const { status, requestId } = await waiter.answer;
  expect(status).toBe(200);
  expect(await held()).toEqual([requestId]);
});

describe('a hold that lapses while its replica stands still before it reads the answer of Redis', () => {
  /** Freezes the replica when Redis has run what it was sent, before the replica reads the answer. */
  async function freezeOnce(hasRun: () => Promise<boolean>): Promise<void> {
    await until(hasRun);
    frozen.signal('SIGSTOP');
    link.toClient.pass();
  }

  test('makes a check an error', async () => {
    link.toClient.delay(ANSWER_DELAY_MILLIS);
    const check = requestRate(frozen.url, key, `holdMillis=${SHORT_HOLD_MILLIS}`);
    await freezeOnce(async () => (await held()).length === 1);
    const second = await takeOver();
    frozen.signal('SIGCONT');
    expect((await check.answer).status).toBe(503);
    expect(await held()).toEqual([second]);
  });

  test('makes its renewal an error', async () => {
    const { requestId } = await requestRate(frozen.url, key, `holdMillis=${SHORT_HOLD_MILLIS}`)
      .answer;
    const renew = (): ReturnType<typeof send> =>
      send(frozen.url, 'PUT', `/rate/${key}/${requestId}`);
    // Loads the script. With the delay this would take two answers of Redis, nearly as long as the hold.
    expect((await renew()).status).toBe(200);
    const before = await holdOf(requestId!);
    link.toClient.delay(ANSWER_DELAY_MILLIS);
    const renewal = renew();
    await freezeOnce(async () => (await holdOf(requestId!)) !== before);
    const second = await takeOver();
    frozen.signal('SIGCONT');
    expect((await renewal).status).toBe(503);
    expect(await held()).toEqual([second]);
  });
});
