import express, { type Request } from 'express';

import { rateLimit, type RateLimitOptions, SluiceClient } from '../../../clients/node/src/index.js';
import { type AppByRules, serveByRules } from '../../support/app-by-rules.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { freePort } from '../../support/free-port.js';
import { type ServedApp, serve } from '../../support/http-app.js';
import { begin, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

/** Its clock stands still. */
let sluice: AppByRules;
let client: SluiceClient;
beforeAll(async () => {
  sluice = await serveByRules([], { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' });
  client = new SluiceClient(sluice.url);
});
afterAll(() => sluice.close());

const served: ServedApp[] = [];
afterEach(() => Promise.all(served.splice(0).map((app) => app.close())));

/** An app behind the middleware, whose key is in the query. */
async function limited(
  options: Partial<RateLimitOptions<Request>> = {},
  by = client,
): Promise<{ url: string; handled: string[] }> {
  const handled: string[] = [];
  const app = express();
  const keyOf = ({ query }: Request) => query.key as string | undefined;
  app.use(rateLimit(by, { keyOf, ...options }));
  app.get('/', (request, response) => {
    handled.push(request.url);
    response.send('done');
  });
  const one = await serve(app);
  served.push(one);
  return { url: one.url, handled };
}

const unreachable = async () =>
  new SluiceClient({ url: `http://127.0.0.1:${await freePort()}`, retries: 0 });

test('a request passes while there is room, and then gets a 429 that says when to come back', async () => {
  const { url, handled } = await limited();
  const path = `/?key=${uniqueKey()}`;

  const first = await send(url, 'GET', path);
  const second = await send(url, 'GET', path);

  expect([first.status, first.text]).toEqual([200, 'done']);
  expect(second).toMatchObject({
    status: 429,
    headers: { 'retry-after': '3600', 'cache-control': 'no-store' },
    text: '{"error":"rate limit exceeded"}',
  });
  expect(handled).toEqual([path]);
});

test.each([[false], [true]])('a response has what is left, with wait: %s', async (wait) => {
  const { url } = await limited({ wait, maxWaitMillis: wait ? 1000 : undefined });
  const path = `/?key=${uniqueKey()}`;

  const answers = [await send(url, 'GET', path), await send(url, 'GET', path)];

  expect(answers.map(({ status }) => status)).toEqual([200, 429]);
  for (const { headers } of answers) {
    expect(headers).toMatchObject({
      'ratelimit-policy': '"default";q=1;w=3600',
      ratelimit: '"default";r=0;t=3600',
    });
  }
});

test('a response has nothing of the quota, if told so', async () => {
  const { url } = await limited({ quotaHeaders: false });

  const { status, headers } = await send(url, 'GET', `/?key=${uniqueKey()}`);
  expect(status).toBe(200);
  expect(headers).not.toHaveProperty('ratelimit');
});

test('a request without a key passes', async () => {
  const { url } = await limited({}, await unreachable());

  expect(await send(url, 'GET', '/')).toMatchObject({ status: 200 });
});

test('requests can wait for their turn', async () => {
  const { url } = await limited({ wait: true });
  const key = uniqueKey();
  const holder = await client.check(key);
  const answer = send(url, 'GET', `/?key=${key}`);
  await untilWaiting(sluice.url, key, 1);

  if (holder.approved) await client.release(key, holder.requestId);

  expect(await answer).toMatchObject({ status: 200 });
});

test('a request whose client disconnects while waiting gives its place up, and is not handled', async () => {
  const { url, handled } = await limited({ wait: true });
  const key = uniqueKey();
  await client.check(key);
  const request = begin(url, 'GET', `/?key=${key}`);
  await untilWaiting(sluice.url, key, 1);

  request.disconnect();

  await until(async () => (await debugState(sluice.url, key)).NumWaiting === 0);
  expect(handled).toEqual([]);
});

describe('without Sluice', () => {
  test('requests get a 503 that says when to come back', async () => {
    const { url, handled } = await limited({}, await unreachable());

    expect(await send(url, 'GET', '/?key=a')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      text: '{"error":"rate limiter unavailable"}',
    });
    expect(handled).toEqual([]);
  });

  test('requests pass if the policy is allow', async () => {
    const { url } = await limited({ outagePolicy: 'allow' }, await unreachable());

    expect(await send(url, 'GET', '/?key=a')).toMatchObject({ status: 200 });
  });
});

test.each(['deny', 'allow'] as const)(
  'a check that Sluice rejects is a fault of the app: %s',
  async (outagePolicy) => {
    const { url, handled } = await limited({ outagePolicy });

    const path = `/?key=${'x'.repeat(600)}`;

    expect(await send(url, 'GET', path)).toMatchObject({ status: 500 });
    expect(handled).toEqual([]);
  },
);
