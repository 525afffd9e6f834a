import { limitedFetch, SluiceClient, SluiceDeniedError } from '../../../src/client/index.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { freePort } from '../../support/free-port.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRecordingServers } from '../../support/client/recording-server.js';

const serve = useRecordingServers();

const sluice = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));
let client: SluiceClient;
beforeAll(() => {
  client = new SluiceClient(sluice.url);
});

const startTarget = () =>
  serve((call) => {
    call.succeed({ hello: 'world' });
  });
const keyOf = ({ searchParams }: URL) => searchParams.get('key') ?? undefined;

test.each([
  ['a text', (url: string) => url],
  ['a URL', (url: string) => new URL(url)],
  ['a request', (url: string) => new Request(url)],
])('checks the limit before it sends a request, called with %s', async (_, made) => {
  const target = await startTarget();
  const call = limitedFetch(client, { keyOf, wait: false });
  const url = `${target.url}/?key=${uniqueKey()}`;

  expect(await (await call(made(url))).json()).toEqual({ hello: 'world' });
  await expect(call(made(url))).rejects.toBeInstanceOf(SluiceDeniedError);

  expect(target.calls).toHaveLength(1);
});

test('a request waits for its turn', async () => {
  const target = await startTarget();
  const call = limitedFetch(client, { keyOf });
  const key = uniqueKey();
  const holder = await client.check(key);
  const called = call(`${target.url}/?key=${key}`, { method: 'POST', body: '[]' });
  await untilWaiting(sluice.url, key, 1);
  expect(target.calls).toEqual([]);

  if (holder.approved) await client.release(key, holder.requestId);

  expect((await called).status).toBe(200);
  expect(target.calls).toMatchObject([{ method: 'POST' }]);
});

test.each([
  ['of its own', (call: typeof fetch, url: string, signal: AbortSignal) => call(url, { signal })],
  [
    'of a request',
    (call: typeof fetch, url: string, signal: AbortSignal) => call(new Request(url, { signal })),
  ],
])('a signal %s ends the wait', async (_, begin) => {
  const target = await startTarget();
  const call = limitedFetch(client, { keyOf });
  const key = uniqueKey();
  await client.check(key);
  const leaving = new AbortController();
  const called = begin(call, `${target.url}/?key=${key}`, leaving.signal);
  await untilWaiting(sluice.url, key, 1);

  leaving.abort();

  await expect(called).rejects.toMatchObject({ name: 'AbortError' });
  await untilWaiting(sluice.url, key, 0);
  expect(target.calls).toEqual([]);
});

test('a request without a key is not limited', async () => {
  const target = await startTarget();
  const call = limitedFetch(new SluiceClient('http://127.0.0.1:1'), { keyOf });

  expect((await call(target.url)).status).toBe(200);
});

test('requests use the fetch that is given', async () => {
  const target = await startTarget();
  const sent: unknown[] = [];
  const own: typeof fetch = (input, init) => {
    sent.push(input);
    return fetch(input, init);
  };
  const url = `${target.url}/?key=${uniqueKey()}`;

  await limitedFetch(client, { keyOf, fetch: own })(url);

  expect(sent).toEqual([url]);
});

describe('if the request fails', () => {
  const approved = async (key: string) => (await debugState(sluice.url, key)).NumApprovedThisWindow;

  test('its approval is released if there was no connection', async () => {
    const key = uniqueKey();
    const call = limitedFetch(client, { keyOf });

    await expect(call(`http://127.0.0.1:${await freePort()}/?key=${key}`)).rejects.toMatchObject({
      cause: { code: 'ECONNREFUSED' },
    });

    expect(await approved(key)).toBe(0);
  });

  test('its approval stays if the answer is lost, since the request may have arrived', async () => {
    const target = await serve((call) => {
      call.lose();
    });
    const key = uniqueKey();

    await expect(limitedFetch(client, { keyOf })(`${target.url}/?key=${key}`)).rejects.toThrow(
      'fetch failed',
    );

    expect(await approved(key)).toBe(1);
  });

  test('its approval stays if it is aborted on its way', async () => {
    const target = await serve();
    const key = uniqueKey();
    const leaving = new AbortController();
    const { signal } = leaving;
    const called = limitedFetch(client, { keyOf })(`${target.url}/?key=${key}`, { signal });
    await target.call(0);

    leaving.abort();

    await expect(called).rejects.toMatchObject({ name: 'AbortError' });
    expect(await approved(key)).toBe(1);
  });
});

describe('an answer that asks to wait', () => {
  const startFull = (status: number, retryAfter: string) =>
    serve((call) => {
      call.refuse(status, retryAfter);
    });
  const pausedMillis = async (key: string): Promise<number> =>
    (await debugState(sluice.url, key)).PausedMillis ?? 0;

  test.each([
    [429, '30', 30_000],
    [503, '30', 30_000],
    [429, new Date(Date.now() + 3_600_000).toUTCString(), 3_600_000],
    [429, '99999999', 86_400_000],
  ])('with %i and Retry-After: %s pauses its key, if told to', async (status, text, millis) => {
    const target = await startFull(status, text);
    const key = uniqueKey();
    const call = limitedFetch(client, { keyOf, pausesKey: true });

    expect((await call(`${target.url}/?key=${key}`)).status).toBe(status);

    const left = await pausedMillis(key);
    expect(left).toBeLessThanOrEqual(millis);
    expect(left).toBeGreaterThan(millis - 20_000);
  });

  test.each([
    ['if it is not told to', {}, 429, '30'],
    ['for another status', { pausesKey: true }, 500, '30'],
    ['without a time', { pausesKey: true }, 429, 'soon'],
  ])('pauses nothing %s', async (_, options, status, text) => {
    const target = await startFull(status, text);
    const key = uniqueKey();

    expect(
      (await limitedFetch(client, { keyOf, ...options })(`${target.url}/?key=${key}`)).status,
    ).toBe(status);

    expect(await pausedMillis(key)).toBe(0);
  });
});
