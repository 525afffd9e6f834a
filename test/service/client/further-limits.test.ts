import { SluiceClient, SluiceDeniedError } from '../../../src/client/index.js';
import { useAppsByRules } from '../../support/app-by-rules.js';

const serve = useAppsByRules();

const HOUR = 3_600_000;
const HOURLY = { name: 'hour', max_requests_per_window: 1, window_millis: HOUR };

const HOUR_LEFT = {
  name: 'hour',
  limit: 1,
  remaining: 0,
  resetSeconds: 3600,
  windowSeconds: 3600,
};

/** The quota of the key, whose own window may have just ended. */
function quotaWith(further: readonly object[]): unknown {
  const own = {
    name: 'default',
    limit: 1,
    remaining: expect.any(Number) as number,
    resetSeconds: 1,
  };
  return [{ ...own, windowSeconds: 1 }, ...further];
}

/** A client, and a key that its limit of an hour denies. */
async function clientOf(limits: readonly object[]): Promise<SluiceClient> {
  const app = await serve([
    { key_pattern: 'key', max_requests_per_window: 1, max_requests_in_queue: 0, limits },
  ]);
  const client = new SluiceClient(app.url);
  expect(await client.check('key')).toMatchObject({ approved: true });
  return client;
}

test('a denial names the limit that has too little left, alone and among others', async () => {
  const client = await clientOf([HOURLY]);
  const denial = { approved: false, retryAfterSeconds: 3600, limit: 'hour' };
  expect(await Promise.all([client.check('key'), client.check('key')])).toEqual([denial, denial]);
  expect(await client.wait('key')).toEqual({ ...denial, quota: quotaWith([HOUR_LEFT]) });
});

test('a peek names the limit that has too little left', async () => {
  const client = await clientOf([HOURLY]);
  expect(await client.peek('key')).toMatchObject({ allowed: false, limit: 'hour' });
});

test('a denied permit throws an error that names the limit', async () => {
  const client = await clientOf([HOURLY]);
  const denied = client.permit('key');
  await expect(denied).rejects.toBeInstanceOf(SluiceDeniedError);
  await expect(denied).rejects.toMatchObject({ retryAfterSeconds: 3600, limit: 'hour' });
});

test('a denial of a key without further limits names none', async () => {
  const client = await clientOf([]);
  const denial = { approved: false, retryAfterSeconds: 1 };
  expect(await client.check('key')).toStrictEqual(denial);
  expect(await client.wait('key')).toStrictEqual({ ...denial, quota: quotaWith([]) });
  await expect(client.permit('key')).rejects.toHaveProperty('limit', undefined);
});
