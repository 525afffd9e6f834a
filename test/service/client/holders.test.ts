import { hostname } from 'node:os';

import { SluiceClient } from '../../../src/client/index.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { debugState } from '../../support/debug-state.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';

const OWN = `${hostname()}:${process.pid}`;
const HOLD = { maxRequests: 9, holdMillis: 60_000 };

const serve = useRecordingServers();
const app = useApp(() => ({}));

async function holdersOf(key: string): Promise<(string | undefined)[]> {
  const { Holders = [] } = await debugState(app.url, key);
  return Holders.map(({ Holder }) => Holder);
}

test('checks, waits and permits that are held name the host and the process', async () => {
  const key = uniqueKey();
  const client = new SluiceClient(app.url);

  await client.check(key, HOLD);
  await client.check(key, { ...HOLD, quota: true });
  await client.wait(key, HOLD);
  await client.withPermit(key, async () => {
    expect(await holdersOf(key)).toEqual([OWN, OWN, OWN, OWN]);
  });
  await client.check(key);
});

test.each([
  ['host of my choice', 'host of my choice'],
  [false, undefined],
] as const)('a client with the holder %j says so', async (holder, shown) => {
  const key = uniqueKey();
  await new SluiceClient({ url: app.url, holder }).permit(key, HOLD);
  expect(await holdersOf(key)).toEqual([shown]);
});

test('a holder that is empty or too long is an error at once', () => {
  const url = app.url;
  expect(() => new SluiceClient({ url, holder: '' })).toThrow(RangeError);
  expect(() => new SluiceClient({ url, holder: 'ä'.repeat(33) })).toThrow(
    'holder must be 1 to 64 bytes of UTF-8, not 66',
  );
});

describe('a service of a version without holders', () => {
  test('is asked again without one, and from then on', async () => {
    const server = await serve((call) => {
      if (call.path.includes('holder=')) {
        call.fail(400, 'unknown parameter holder; did you mean holdMillis?');
      } else call.succeed({ request_id: 'id' });
    });
    const client = new SluiceClient(server.url);

    for (let i = 0; i < 2; i += 1) {
      expect(await client.permit('a', { holdMillis: 60_000 })).toBe('id');
    }

    const named = server.calls.map(({ path }) => path.includes('holder='));
    expect(named).toEqual([true, false, false]);
  });

  test('is also asked again without one in a bulk request', async () => {
    const server = await serve((call) => {
      call.answer((element) =>
        'holder' in element
          ? { status: 400, error: 'holder must be left out' }
          : { status: 200, request_id: 'id' },
      );
    });
    const client = new SluiceClient(server.url);

    expect(await client.check('a', { holdMillis: 60_000 })).toMatchObject({ approved: true });
    expect(server.calls).toHaveLength(2);
  });
});

test('another rejection is not about the holder', async () => {
  const server = await serve((call) => {
    call.fail(400, 'holdMillis must be a whole number from 1000 to 86400000');
  });
  const asked = new SluiceClient(server.url).permit('a', { holdMillis: 1 });
  await expect(asked).rejects.toMatchObject({ status: 400 });
  expect(server.calls).toHaveLength(1);
});
