import {
  limitedFetch,
  type LimitedFetchOptions,
  SluiceClient,
} from '../../../clients/node/src/index.js';
import { useVendors, type VendorCall } from '../../support/client/vendor.js';
import { debugState } from '../../support/debug-state.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';

/** Longer than a test waits for its end. */
const HELD_MILLIS = 3_600_000;

const startVendor = useVendors();
const sluice = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '10' }));
let client: SluiceClient;
beforeAll(() => {
  client = new SluiceClient(sluice.url);
});

/** A vendor whose first answers have a status and headers, and whose later ones are 200. */
const refusing = (times: number, status: number, headers: Record<string, string>) => {
  let calls = 0;
  return startVendor(({ response }) => {
    calls += 1;
    if (calls <= times) response.writeHead(status, headers).end('refused');
    else response.end('OK');
  });
};
const limited = (key: string, options: Partial<LimitedFetchOptions> = {}) =>
  limitedFetch(client, { keyOf: () => key, retries: 2, ...options });
const SOON = { 'retry-after-ms': '20' };

describe('a refused request', () => {
  test.each<[number, Record<string, string>, number]>([
    [429, SOON, 2],
    [503, SOON, 2],
    [429, {}, 1],
  ])('is sent again after %i with %j', async (status, headers, times) => {
    const vendor = await refusing(times, status, headers);
    const key = uniqueKey();
    const form = new FormData();
    form.set('a', 'b');

    const answer = await limited(key)(vendor.url, { method: 'POST', body: form });

    expect(await answer.text()).toBe('OK');
    expect(vendor.calls).toHaveLength(times + 1);
    for (const { body } of vendor.calls) expect(body).toContain('name="a"\r\n\r\nb');
    // Each attempt is a check of its own.
    expect((await debugState(sluice.url, key)).NumApprovedThisWindow).toBe(times + 1);
  });

  test('is sent again no sooner than the vendor says', async () => {
    const vendor = await refusing(1, 429, { 'retry-after': '1' });
    const begunAt = performance.now();

    await limited(uniqueKey())(vendor.url);

    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(999);
  });

  test.each<[string, number, Record<string, string>, Partial<LimitedFetchOptions>, number]>([
    ['has no retries by default', 429, SOON, { retries: undefined }, 1],
    ['is answered with the last refusal', 429, SOON, {}, 3],
    ['does not wait longer than it may', 429, { 'retry-after': '2' }, { maxWaitMillis: 1999 }, 1],
    ['is final if a 503 says no time', 503, {}, {}, 1],
    ['is final with another status', 500, SOON, {}, 1],
  ])('%s', async (_, status, headers, options, times) => {
    const vendor = await refusing(9, status, headers);

    const answer = await limited(uniqueKey(), options)(vendor.url);

    expect([answer.status, await answer.text()]).toEqual([status, 'refused']);
    expect(vendor.calls).toHaveLength(times);
  });

  const stream = () => new Blob(['a']).stream();
  test.each<[string, (url: string) => Parameters<typeof fetch>]>([
    ['is a stream', (url) => [url, { method: 'POST', body: stream(), duplex: 'half' }]],
    ['belongs to a Request', (url) => [new Request(url, { method: 'POST', body: 'a' })]],
  ])('is sent once if its body %s', async (_, made) => {
    const vendor = await refusing(9, 429, SOON);

    expect((await limited(uniqueKey())(...made(vendor.url))).status).toBe(429);

    expect(vendor.calls).toMatchObject([{ body: 'a' }]);
  });

  test('gives its hold back, and its unread body, before it waits', async () => {
    const leaving = new AbortController();
    const vendor = await startVendor(({ response }: VendorCall) => {
      response.writeHead(429, { 'retry-after': '3600' }).write('an unread body');
    });
    const key = uniqueKey();
    const { signal } = leaving;
    const called = limited(key, { holdMillis: HELD_MILLIS })(vendor.url, { signal });
    const { response } = await vendor.call(0);

    await until(() => response.closed);
    await until(async () => (await debugState(sluice.url, key)).NumHeld === undefined);

    // The signal also ends the wait.
    leaving.abort(new Error('left'));
    await expect(called).rejects.toThrow('left');
    expect(vendor.calls).toHaveLength(1);
  });
});

test('retries below 0 are rejected', () => {
  expect(() => limited('a', { retries: -1 })).toThrow(
    new RangeError('retries must be at least 0, not -1'),
  );
});
