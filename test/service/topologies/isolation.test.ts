import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { adaptedRules, createUser } from '../../support/redis-user.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const startApp = useApps();

function start(environment: Record<string, string>): Promise<TestApp> {
  return startApp({
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
    ...environment,
  });
}

/** Fills the window of the key, lets one check wait, and returns that check and a release that serves it. */
async function oneWaiting(app: TestApp, key: string) {
  const approved = await approve(app.url, key);
  const waiter = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
  await untilWaiting(app.url, key, 1);
  return { waiter, release: () => send(app.url, 'DELETE', `${ratePath(key)}/${approved}`) };
}

/** A service with a prefix or a database of its own, and a user that may use no other. */
async function startOn(place: { prefix?: string; database?: number }): Promise<TestApp> {
  const { prefix = 'sluice:', database = 0 } = place;
  return start({
    KEY_PREFIX: prefix,
    REDIS_DATABASE: String(database),
    ...(await createUser(redis.client, adaptedRules(place))),
  });
}

describe.each([
  ['databases', { database: 0 }, { database: 3 }],
  ['key prefixes', { prefix: 'a:' }, { prefix: 'a:b:' }],
])('services with different %s on one Redis', (_what, ofOne, ofOther) => {
  test('share no count, no queue and no wake', async () => {
    const [one, other] = await Promise.all([startOn(ofOne), startOn(ofOther)]);
    const key = uniqueKey();
    const inOne = await oneWaiting(one, key);
    const inOther = await oneWaiting(other, key);

    await inOne.release();
    expect((await inOne.waiter.answer).status).toBe(200);
    expect(await debugState(one.url, key)).toMatchObject({ NumWaiting: 0 });
    expect(await debugState(other.url, key)).toMatchObject({ NumWaiting: 1 });

    await inOther.release();
    expect((await inOther.waiter.answer).status).toBe(200);
  });

  test('list only their own keys', async () => {
    const [one, other] = await Promise.all([startOn(ofOne), startOn(ofOther)]);
    const [mine, theirs] = [uniqueKey(), uniqueKey()];
    await approve(one.url, mine);
    await approve(other.url, theirs);

    const list = (await send(one.url, 'GET', '/debug')).json() as { Instances: object };
    expect(Object.keys(list.Instances)).toContain(mine);
    expect(Object.keys(list.Instances)).not.toContain(theirs);
    expect(await debugState(one.url, theirs)).toEqual({ Key: theirs, Found: false });
  });
});

test('a database in the URL works like the setting', async () => {
  const user = await createUser(redis.client, adaptedRules({ database: 5 }));
  const app = await start({ REDIS_URL: `${redis.url}/5`, ...user });
  const key = uniqueKey();
  await approve(app.url, key);
  const client = redis.client.duplicate({ db: 5 });
  const exists = client.exists(new KeyNaming('sluice:').namesOf(key).state);
  expect(await exists.finally(() => client.disconnect())).toBe(1);
});
