import {
  limitedFetch,
  type LimitedFetchOptions,
  SluiceClient,
  SluiceError,
} from '../../../src/client/index.js';
import { useAppsByRules } from '../../support/app-by-rules.js';
import { useModelServers } from '../../support/client/model-server.js';
import { useRecordingServers } from '../../support/client/recording-server.js';

const serve = useRecordingServers();
const serveByRules = useAppsByRules();
const serveModel = useModelServers();

const RULES = [
  {
    key_pattern: 'llm',
    max_requests_per_window: 1000,
    window_millis: 60_000,
    limits: [{ name: 'requests', max_requests_per_window: 100, window_millis: 60_000 }],
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
  test('pauses the key if nothing remains, until that resets', async () => {
    const model = await serveModel({ remainingTokens: 0 });
    const { told, call } = await limitedBy({ reportsRemaining: LIMITS }, rejectReports);

    expect((await call(model.url)).status).toBe(200);

    expect(told).toEqual([`${PATH}remaining=0&resetMillis=360000`, `${PATH}pauseMillis=360000`]);
  });

  test('pauses nothing if something remains', async () => {
    const model = await serveModel({ remainingTokens: 1 });
    const { told, call } = await limitedBy({ reportsRemaining: LIMITS }, rejectReports);

    await call(model.url);

    expect(told).toEqual([`${PATH}remaining=1&resetMillis=360000`]);
  });

  test.each([
    ['30', 360_000],
    ['3600', 3_600_000],
  ])('pauses once, with Retry-After: %s for the longer time', async (retryAfter, pauseMillis) => {
    const model = await serveModel({ status: 429, remainingTokens: 0, retryAfter });
    const options = { reportsRemaining: LIMITS, pausesKey: true };
    const { told, call } = await limitedBy(options, rejectReports);

    expect((await call(model.url)).status).toBe(429);

    expect(told.slice(1)).toEqual([`${PATH}pauseMillis=${pauseMillis}`]);
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
  test('sends what remains, when it resets, and the limit', async () => {
    const server = await serve((call) => {
      call.succeed({});
    });
    const client = new SluiceClient(server.url);

    await client.reportRemaining('a/b', 0);
    await client.reportRemaining('a', 12, { resetMillis: 1000, limit: 'per hour' });

    expect(server.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /rate/a%2Fb?remaining=0',
      'PUT /rate/a?remaining=12&resetMillis=1000&limit=per+hour',
    ]);
  });

  test('throws an error with what Sluice rejects', async () => {
    const server = await serve((call) => {
      call.fail(400, 'the limit is a token_bucket');
    });

    const reported = new SluiceClient(server.url).reportRemaining('a', 1);

    await expect(reported).rejects.toBeInstanceOf(SluiceError);
    await expect(reported).rejects.toMatchObject({
      status: 400,
      message: 'the limit is a token_bucket',
    });
  });
});
