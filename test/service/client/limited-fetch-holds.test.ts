import { once } from 'node:events';

import {
  limitedFetch,
  type LimitedFetchOptions,
  SluiceClient,
  SluicePermitLostError,
} from '../../../clients/node/src/index.js';
import { useVendors, type VendorCall } from '../../support/client/vendor.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { freePort } from '../../support/free-port.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';

/** Longer than a test waits for its end. */
const HELD_MILLIS = 3_600_000;
/** So long that a machine that stalls between two renewals does not end it. Windows are shorter. */
const HOLD_MILLIS = 4000;

const startVendor = useVendors();
const sluice = useApp(() => ({ WINDOW_MILLIS: '100', MAX_REQUESTS: '1' }));
let client: SluiceClient;
beforeAll(() => {
  client = new SluiceClient(sluice.url);
});

const limited = (key: string, options: Partial<LimitedFetchOptions> = {}) =>
  limitedFetch(client, { keyOf: () => key, holdMillis: HELD_MILLIS, ...options });
const held = async (key: string): Promise<number> =>
  (await debugState(sluice.url, key)).NumHeld ?? 0;
const untilReleased = (key: string) => until(async () => (await held(key)) === 0);
const begin = ({ response }: VendorCall) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
};
/** More than is read ahead and than sockets buffer. */
const LARGE = Buffer.alloc(32 * 1024 * 1024);

describe('a hold', () => {
  test('is kept over windows until a stream has ended, and then the next request is sent', async () => {
    const vendor = await startVendor(begin);
    const key = uniqueKey();
    const call = limited(key, { holdMillis: HOLD_MILLIS });
    const answer = await call(vendor.url);
    const read = answer.text();
    const next = call(vendor.url);
    await untilWaiting(sluice.url, key, 1);
    const [holder] = (await debugState(sluice.url, key)).Holders ?? [];
    let least = holder!.LapseMillis;
    // It was renewed.
    await until(async () => {
      const [same] = (await debugState(sluice.url, key)).Holders ?? [];
      if (same?.Handle !== holder!.Handle) throw new Error('the hold is lost');
      const isRenewed = same.LapseMillis > least;
      least = same.LapseMillis;
      return isRenewed;
    });
    expect(vendor.calls).toHaveLength(1);

    (await vendor.call(0)).response.end('data: 2\n\n');

    expect(await read).toBe('data: 1\n\ndata: 2\n\n');
    await (await next).body?.cancel();
  });

  test.each<[string, (answer: Response, call: VendorCall) => unknown]>([
    ['is cancelled', (answer) => answer.body?.cancel()],
    [
      'is cut',
      async (answer, { response }) => {
        response.destroy();
        await expect(answer.text()).rejects.toThrow('terminated');
      },
    ],
    ['has ended, and nobody reads it', (_, { response }) => response.end()],
    [
      'has been read in both clones',
      async (answer, { response }) => {
        response.end();
        const clone = answer.clone();
        expect(await Promise.all([answer.text(), clone.text()])).toEqual([
          'data: 1\n\n',
          'data: 1\n\n',
        ]);
      },
    ],
  ])('is released once a body %s', async (_, end) => {
    const vendor = await startVendor(begin);
    const key = uniqueKey();
    const answer = await limited(key)(vendor.url);
    expect(await held(key)).toBe(1);

    await end(answer, await vendor.call(0));

    await untilReleased(key);
  });

  test('is released if its caller aborts while the body streams', async () => {
    const vendor = await startVendor(begin);
    const key = uniqueKey();
    const leaving = new AbortController();
    const answer = await limited(key)(vendor.url, { signal: leaving.signal });
    const read = answer.text();
    const { response } = await vendor.call(0);

    leaving.abort();

    await expect(read).rejects.toMatchObject({ name: 'AbortError' });
    await untilReleased(key);
    if (!response.closed) await once(response, 'close');
  });

  test.each([
    ['the answer has no body', 'HEAD', (call: VendorCall) => call.response.end()],
    ['the status has no body', 'GET', (call: VendorCall) => call.response.writeHead(204).end()],
  ])('is released if %s', async (_, method, answer) => {
    const vendor = await startVendor(answer);
    const key = uniqueKey();

    expect((await limited(key)(vendor.url, { method })).body).toBeNull();

    await untilReleased(key);
  });

  test('is released if the request fails, although it may have arrived', async () => {
    const vendor = await startVendor(({ response }) => response.destroy());
    const [lost, unsent] = [uniqueKey(), uniqueKey()];

    await expect(limited(lost)(vendor.url)).rejects.toThrow('fetch failed');
    await expect(limited(unsent)(`http://127.0.0.1:${await freePort()}`)).rejects.toThrow();

    expect([await held(lost), await held(unsent)]).toEqual([0, 0]);
  });

  test('ends with a large body that nobody reads for its length, and a later read fails', async () => {
    const vendor = await startVendor(({ response }) => response.end(LARGE));
    const key = uniqueKey();
    // The test waits for its whole length.
    const answer = await limited(key, { holdMillis: 4000 })(vendor.url);
    const { response } = await vendor.call(0);

    await once(response, 'close');

    await untilReleased(key);
    const error: unknown = await answer.text().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SluicePermitLostError);
    expect(error).toMatchObject({ cause: new Error('nobody has read the body for 4000 ms') });
  });

  test.each([
    ['before its answer', () => undefined],
    ['while its body streams', begin],
  ])('that is lost %s aborts the request', async (_, answer) => {
    const vendor = await startVendor(answer);
    const key = uniqueKey();
    const called = limited(key, { holdMillis: HOLD_MILLIS })(vendor.url).then((got) => got.text());
    const { response } = await vendor.call(0);
    const [holder] = (await debugState(sluice.url, key)).Holders ?? [];

    // A person ends the hold.
    const ending = `${sluice.url}/rate/${key}/holders/${holder?.Handle}`;
    expect((await fetch(ending, { method: 'DELETE' })).status).toBe(200);

    await expect(called).rejects.toBeInstanceOf(SluicePermitLostError);
    if (!response.closed) await once(response, 'close');
  });

  test('is not renewed or released if nothing counts it', async () => {
    const vendor = await startVendor(({ response }) => response.end('OK'));
    const asked: (string | undefined)[] = [];
    const shadow = new SluiceClient({
      url: 'http://sluice',
      keepMillis: 0,
      fetch: (_, init) => {
        asked.push(init?.method);
        const headers = { 'x-sluice-shadow': 'denied' };
        return Promise.resolve(Response.json({ request_id: 'id' }, { headers }));
      },
    });
    const call = limitedFetch(shadow, { keyOf: () => 'a', holdMillis: HOLD_MILLIS });

    expect(await (await call(vendor.url)).text()).toBe('OK');

    expect(asked).toEqual(['POST']);
  });
});

describe('the answer of a request with a hold', () => {
  const redirect = ({ request, response }: VendorCall) => {
    if (request.url === '/there') {
      response.writeHead(201, 'Made', { 'set-cookie': ['a=1', 'b=2'] }).end('{"a":"ä"}');
    } else {
      response.writeHead(302, { location: '/there' }).end();
    }
  };
  const shown = ({
    headers,
    ok,
    redirected,
    status,
    statusText,
    type,
    url,
    bodyUsed,
  }: Response) => {
    const cookies = headers.getSetCookie();
    return { cookies, ok, redirected, status, statusText, type, url, bodyUsed };
  };

  test('shows the same as an answer of fetch, as its clone does', async () => {
    const vendor = await startVendor(redirect);
    const plain = await fetch(vendor.url);
    const answer = await limited(uniqueKey())(vendor.url);
    const clone = answer.clone();

    expect([shown(answer), shown(clone)]).toEqual([shown(plain), shown(plain)]);
    expect(answer).toBeInstanceOf(Response);
    expect(Object.keys(answer)).toEqual(Object.keys(plain));
    expect([await answer.json(), await clone.json()]).toEqual([{ a: 'ä' }, { a: 'ä' }]);
    expect(answer.bodyUsed).toBe(true);
    expect(() => answer.clone()).toThrow('consumed');
  });

  test('has bytes that a reader with a buffer of its own can read', async () => {
    const vendor = await startVendor(({ response }) => response.end('abc'));
    const answer = await limited(uniqueKey())(vendor.url);
    const reader = answer.body!.getReader({ mode: 'byob' });

    const { value } = await reader.read(new Uint8Array(8));

    expect(Buffer.from(value!).toString()).toBe('abc');
    expect((await reader.read(new Uint8Array(8))).done).toBe(true);
  });

  test('leaves the memory of the chunks of a stream to their owner', async () => {
    const chunk = Buffer.from('abc');
    const own = () =>
      Promise.resolve(
        new Response(
          new ReadableStream<Uint8Array>({
            start: (controller) => {
              controller.enqueue(chunk);
              controller.close();
            },
          }),
        ),
      );

    expect(await (await limited(uniqueKey(), { fetch: own })('http://vendor')).text()).toBe('abc');

    expect(chunk.toString()).toBe('abc');
  });

  test('is the whole of a large body, which is not read ahead', async () => {
    const vendor = await startVendor(({ response }) => response.end(LARGE));
    const answer = await limited(uniqueKey())(vendor.url);
    const { response } = await vendor.call(0);
    expect(response.writableFinished).toBe(false);

    expect((await answer.arrayBuffer()).byteLength).toBe(LARGE.byteLength);
  });
});

test('a request that is given as the options of another is sent as it is', async () => {
  const vendor = await startVendor(({ response }) => response.end());
  const init = new Request(vendor.url, { method: 'POST', body: 'a' });

  await limited(uniqueKey())(vendor.url, init);

  expect(vendor.calls).toMatchObject([{ body: 'a', request: { method: 'POST' } }]);
});
