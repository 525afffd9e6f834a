import { performance } from 'node:perf_hooks';

import { jest } from '@jest/globals';

import {
  limitedFetch,
  type LimitedFetchOptions,
  SluiceClient,
  SluiceDeniedError,
} from '../../../clients/node/src/index.js';
import { useAppsByRules } from '../../support/app-by-rules.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { freePort } from '../../support/free-port.js';
import { useHttpServers } from '../../support/http-servers.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';

/** What the next answer says. */
export interface ModelState {
  status: number;
  remainingRequests: number;
  remainingTokens: number;
  retryAfter?: string;
}

/** A server that answers like OpenAI's. */
export interface ModelServer {
  readonly url: string;
  readonly next: ModelState;
}

/** Starts such servers, each of which ends with its test. */
function useModelServers(): (next: Partial<ModelState>) => Promise<ModelServer> {
  const start = useHttpServers();
  return async (given) => {
    const next = { status: 200, remainingRequests: 500, remainingTokens: 30_000, ...given };
    const url = await start((_, response) => {
      const { status, remainingRequests, remainingTokens, retryAfter } = next;
      response.writeHead(status, {
        'content-type': 'application/json',
        'openai-processing-ms': '12',
        'x-ratelimit-limit-requests': '500',
        'x-ratelimit-limit-tokens': '30000',
        'x-ratelimit-remaining-requests': String(remainingRequests),
        'x-ratelimit-remaining-tokens': String(remainingTokens),
        'x-ratelimit-reset-requests': '120ms',
        'x-ratelimit-reset-tokens': '6m0s',
        ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
      });
      response.end(JSON.stringify({ object: 'chat.completion', choices: [] }));
    });
    return { url: `${url}/v1/chat/completions`, next };
  };
}

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
    [429, 'the date in an hour', 3_600_000],
    [429, '99999999', 86_400_000],
  ])('with %i and Retry-After: %s pauses its key, if told to', async (status, text, millis) => {
    const date = new Date(Date.now() + millis).toUTCString();
    const target = await startFull(status, text.includes('date') ? date : text);
    const key = uniqueKey();
    const call = limitedFetch(client, { keyOf, pausesKey: true });

    expect((await call(`${target.url}/?key=${key}`)).status).toBe(status);

    const left = await pausedMillis(key);
    expect(left).toBeLessThanOrEqual(millis);
    expect(left).toBeGreaterThan(millis - 20_000);
  });

  test('does not shorten a longer pause, for which another answer has asked', async () => {
    const key = uniqueKey();
    const target = await serve();
    const call = limitedFetch(client, { keyOf, pausesKey: true, maxRequests: 2 });
    const answers = [1, 2].map(() => call(`${target.url}/?key=${key}`));
    const [first, second] = [await target.call(0), await target.call(1)];
    first.refuse(429, '3600');
    await Promise.race(answers);
    second.refuse(429, '1');
    await Promise.all(answers);

    expect(await pausedMillis(key)).toBeGreaterThan(3_000_000);
  });

  test('pauses nothing if it is not told to', async () => {
    const target = await startFull(429, '30');
    const key = uniqueKey();

    expect((await limitedFetch(client, { keyOf })(`${target.url}/?key=${key}`)).status).toBe(429);

    expect(await pausedMillis(key)).toBe(0);
  });
});

const serveByRules = useAppsByRules();
const serveModel = useModelServers();

const RULES = [
  {
    key_pattern: 'llm',
    max_requests_per_window: 1000,
    window_millis: 60_000,
    limits: [{ name: 'requests', max_requests_per_window: 100, window_millis: 60_000 }],
  },
  {
    key_pattern: 'tenants',
    queue: { fair: true },
    limits: [{ name: 'tenant', per: 'group', max_requests_per_window: 100, window_millis: 60_000 }],
  },
];
const LIMITS = { requests: 'requests', tokens: 'default' };
const PATH = '/rate/llm?';

/**
 * A limited `fetch` that asks a service with these rules, and the calls by which it changes the key. These are answered
 * here.
 */
async function limitedBy(
  options: Partial<LimitedFetchOptions>,
  answer: (sent: string) => Response = () => new Response('{}'),
) {
  const { url } = await serveByRules(RULES);
  const told: string[] = [];
  const client = new SluiceClient({
    url,
    fetch: (input, init) => {
      if (init?.method !== 'PUT') return fetch(input, init);
      const sent = (input as string).slice(url.length);
      told.push(sent);
      return Promise.resolve(answer(sent));
    },
  });
  return { told, call: limitedFetch(client, { keyOf: () => 'llm', ...options }) };
}

const rejectReports = (sent: string) =>
  sent.includes('remaining')
    ? Response.json({ error: 'the limit is a token_bucket' }, { status: 400 })
    : new Response('{}');

describe('a call', () => {
  test('reports what remains of requests and tokens, each to its limit', async () => {
    const model = await serveModel({ remainingRequests: 12, remainingTokens: 345 });
    const { told, call } = await limitedBy({ reportsRemaining: LIMITS });

    expect((await call(model.url, { method: 'POST' })).status).toBe(200);

    expect(told).toEqual([
      `${PATH}remaining=12&resetMillis=120&limit=requests`,
      `${PATH}remaining=345&resetMillis=360000`,
    ]);
  });

  test.each([
    ['waits', { hits: 10 }, 990, 979],
    ['does not wait', { wait: false }, 999, 997],
  ])('that %s reports nothing but less than Sluice believes', async (_, asking, same, less) => {
    const model = await serveModel({ remainingRequests: 99, remainingTokens: same });
    const { told, call } = await limitedBy({ reportsRemaining: LIMITS, ...asking });

    await call(model.url);
    expect(told).toEqual([]);

    model.next.remainingTokens = less;
    await call(model.url);
    expect(told).toEqual([`${PATH}remaining=${less}&resetMillis=360000`]);
  });

  test('reports 0 at once, and else the least of a second at its end', async () => {
    const model = await serveModel({ remainingTokens: 900 });
    const { told, call } = await limitedBy({ reportsRemaining: { tokens: 'default' } });

    // However long the calls take, they are in one second for the client.
    const calledAt = performance.now();
    const now = jest.spyOn(performance, 'now').mockReturnValue(calledAt);
    try {
      for (const remaining of [900, 700, 800]) {
        model.next.remainingTokens = remaining;
        await call(model.url);
      }
      expect(told).toEqual([`${PATH}remaining=900&resetMillis=360000`]);
    } finally {
      now.mockRestore();
    }
    await until(() => told.length === 2);
    const [, path, resetMillis] = /^(.*&resetMillis=)(\d+)$/.exec(told[1]!)!;
    expect(path).toBe(`${PATH}remaining=700&resetMillis=`);
    // Told at the end of the second.
    expect(Number(resetMillis)).toBeLessThanOrEqual(359_999);
    expect(Number(resetMillis)).toBeGreaterThanOrEqual(
      Math.floor(360_000 - (performance.now() - calledAt)),
    );

    model.next.remainingTokens = 0;
    await call(model.url);
    expect(told[2]).toBe(`${PATH}remaining=0&resetMillis=360000`);
  });

  test('reports requests to the own limit of its key by default, and no tokens', async () => {
    const model = await serveModel({ remainingRequests: 12, remainingTokens: 345 });
    const { told, call } = await limitedBy({ reportsRemaining: true });

    await call(model.url);

    expect(told).toEqual([`${PATH}remaining=12&resetMillis=120`]);
  });

  test.each([[{}], [{ reportsRemaining: false }]])('reports nothing with %j', async (options) => {
    const model = await serveModel({ remainingRequests: 12 });
    const { told, call } = await limitedBy(options);

    await call(model.url);

    expect(told).toEqual([]);
  });
});

describe('a report that is rejected', () => {
  // test/unit/client/remaining-reports.test.ts judges when a key is paused.
  test.each([
    ['30', 360_000],
    ['3600', 3_600_000],
  ])('pauses once, with Retry-After: %s for the longer time', async (retryAfter, pauseMillis) => {
    const model = await serveModel({ status: 429, remainingTokens: 0, retryAfter });
    const options = { reportsRemaining: LIMITS, pausesKey: true };
    const { told, call } = await limitedBy(options, rejectReports);

    expect((await call(model.url)).status).toBe(429);

    expect(told.slice(1)).toEqual([`${PATH}pauseMillis=${pauseMillis}&canShorten=false`]);
  });
});

describe('a call of a group', () => {
  const path = '/rate/tenants?';
  const pause = `${path}pauseMillis=30000&canShorten=false`;
  const perGroup = true;

  test.each<[string, Partial<LimitedFetchOptions>, string[]]>([
    ['pauses only the group, if told so', { pausesKey: 'group' }, [`${pause}&group=a`]],
    ['pauses the key without one', { pausesKey: 'group', group: undefined }, [pause]],
    [
      'reports to the limit of the group',
      { reportsRemaining: { requests: 'tenant', perGroup } },
      [`${path}remaining=12&resetMillis=120&limit=tenant&group=a`],
    ],
  ])('%s', async (_, options, expected) => {
    const model = await serveModel({ status: 429, remainingRequests: 12, retryAfter: '30' });
    const { told, call } = await limitedBy({ keyOf: () => 'tenants', group: 'a', ...options });

    await call(model.url);

    expect(told).toEqual(expected);
  });

  test('pauses only the group if its limit takes no reports', async () => {
    const model = await serveModel({ status: 429, remainingTokens: 0, retryAfter: '30' });
    const limits = { tokens: 'tenant', perGroup };
    const options = { group: 'a', reportsRemaining: limits, pausesKey: true };
    const { told, call } = await limitedBy({ keyOf: () => 'tenants', ...options }, rejectReports);

    await call(model.url);

    expect(told.slice(1)).toEqual([`${path}pauseMillis=360000&canShorten=false&group=a`, pause]);
  });
});

test('the answer of the vendor is returned although Sluice fails', async () => {
  const model = await serveModel({ remainingRequests: 0, remainingTokens: 0 });
  const { told, call } = await limitedBy({ reportsRemaining: LIMITS }, () =>
    Response.json({ error: 'store unavailable' }, { status: 503 }),
  );

  expect(await (await call(model.url)).json()).toMatchObject({ object: 'chat.completion' });
  expect(told).toHaveLength(2);
});

describe('reportRemaining', () => {
  test('sends what remains, when it resets, the limit and the group', async () => {
    const server = await serve((call) => {
      call.succeed({});
    });
    const client = new SluiceClient(server.url);

    await client.reportRemaining('a/b', 0);
    await client.reportRemaining('a', 12, { resetMillis: 1000, limit: 'per hour', group: 'b' });

    expect(server.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /rate/a%2Fb?remaining=0',
      'PUT /rate/a?remaining=12&resetMillis=1000&limit=per+hour&group=b',
    ]);
  });
});
