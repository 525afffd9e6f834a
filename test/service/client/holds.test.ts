import { SluiceClient } from '../../../src/client/index.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { StoredHolds } from '../../support/client/stored-holds.js';
import { debugState } from '../../support/debug-state.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const HOLD = { maxRequests: 2, holdMillis: 60_000 };

const redis = useRedis();
const holds = new StoredHolds(redis);
const serve = useRecordingServers();
const app = useApp(() => ({ REDIS_URL: redis.url, STORE_TIMEOUT_MILLIS: '30000' }));
let client: SluiceClient;
beforeAll(() => {
  client = new SluiceClient(app.url);
});

const held = (key: string) => debugState(app.url, key).then(({ NumHeld }) => NumHeld);

test('checks and waits hold their approvals, with their hits', async () => {
  const key = uniqueKey();

  const check = client.check(key, { ...HOLD, maxRequests: 5, hits: 2 });
  const permits = [await check, await client.wait(key, { hits: 3, holdMillis: 60_000 })];

  expect(permits).toMatchObject([{ approved: true }, { approved: true }]);
  expect(await held(key)).toBe(5);
});

describe('a renewal', () => {
  test('puts the end of the hold off, and can change its length', async () => {
    const key = uniqueKey();
    const id = await client.permit(key, HOLD);
    const first = (await holds.lapsesAt(key, id))!;

    expect(await client.renew(key, id, { holdMillis: 120_000 })).toBe(true);
    const second = (await holds.lapsesAt(key, id))!;
    expect(await client.renew(key, id)).toBe(true);
    const third = (await holds.lapsesAt(key, id))!;

    expect(second).toBeGreaterThanOrEqual(first + 60_000);
    expect(third).toBeGreaterThanOrEqual(second);
  });

  test('finds no approval that was released, or is not held', async () => {
    const key = uniqueKey();
    const id = await client.permit(key, HOLD);
    await client.release(key, id);

    expect(await client.renew(key, id)).toBe(false);
    expect(await client.renew(key, await client.permit(key))).toBe(false);
  });

  test('that Sluice rejects throws an error', async () => {
    await expect(client.renew(uniqueKey(), 'x', { holdMillis: 1 })).rejects.toMatchObject({
      status: 400,
      message: 'holdMillis must be a whole number from 1000 to 86400000',
    });
  });
});

test.each([
  [{ shadow: 'denied' }, true],
  [{ outagePolicy: 'allow' }, true],
  [{ outagePolicy: 'local' }, undefined],
  [{}, undefined],
])('the approval of a result with %j tells whether nothing counts it', async (mark, uncounted) => {
  const server = await serve((call) => {
    call.answer(() => ({ status: 200, request_id: 'id', ...mark }));
  });

  const decision = await new SluiceClient(server.url).check('a');

  expect(decision).toEqual({ approved: true, requestId: 'id', uncounted });
});
