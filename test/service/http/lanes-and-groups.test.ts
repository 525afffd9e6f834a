import type { DenialReason } from '../../../src/limiter/limiter.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import { checkMany } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { httpAppOver, serve, type ServedApp } from '../../support/http-app.js';
import { ratePath, send } from '../../support/http-client.js';
import { RecordingLimiter } from '../../support/recording-limiter.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';
import { useWaiters } from '../../support/use-waiters.js';

describe('lanes and groups', () => {
  const RULES = [
    {
      key_pattern: 'lanes',
      queue: { lanes: [{ name: 'interactive', head_start_millis: 30_000 }, { name: 'batch' }] },
    },
    {
      key_pattern: 'groups',
      queue: { fair: true, max_requests_in_queue_per_group: 9, weights: { 'gold é': 4 } },
    },
  ];
  const INTERACTIVE = { kind: 'lane', name: 'interactive', headStartMillis: 30_000 };
  const BATCH = { kind: 'lane', name: 'batch', headStartMillis: 0 };
  const GOLD = { kind: 'group', name: 'gold é', weight: 4, maxRequests: 9 };
  const NO_GROUP = { kind: 'group', name: '', weight: 1, maxRequests: 9 };

  const TEXT = 'text of 1 to 64 bytes of UTF-8 without control characters';

  let limiter: RecordingLimiter;
  let app: ServedApp;
  beforeEach(async () => {
    limiter = new RecordingLimiter(...RULES);
    app = await serve(httpAppOver(limiter, { policyOf: (key) => limiter.policyOf(key) }));
  });
  afterEach(async () => {
    await limiter.close();
    await app.close();
  });

  const lists = () => limiter.asked.map(({ list }) => list);
  const check = (key: string, query = '') => send(app.url, 'POST', `${ratePath(key)}${query}`);

  describe.each(['', '&peek=true'])('a check with "%s"', (peek) => {
    test.each([
      ['lanes', 'lane=interactive', INTERACTIVE],
      ['lanes', 'hits=1', BATCH],
      ['groups', 'group=gold%20%C3%A9', GOLD],
      ['groups', 'group=100%', { ...NO_GROUP, name: '100%' }],
      ['groups', 'group=%EF%BF%BD', { ...NO_GROUP, name: '\ufffd' }],
      ['groups', 'hits=1', NO_GROUP],
      ['neither', 'hits=1', undefined],
    ])('of the key %s with %s is of its list', async (key, query, list) => {
      expect((await check(key, `?${query}${peek}`)).status).toBe(200);
      expect(lists()).toEqual([list]);
    });

    test.each([
      ['neither', 'lane=batch', 'lane must be left out: the key has no lanes'],
      ['groups', 'lane=batch', 'lane must be left out: the key has no lanes'],
      ['lanes', 'lane=Batch', 'lane must be one of interactive, batch'],
      ['lanes', 'lane=', 'lane must be one of interactive, batch'],
      ['lanes', 'lane=batch&lane=batch', 'lane must be given once'],
      ['lanes', 'group=gold', 'group must be left out: the key has no fair groups'],
      ['neither', 'group=gold', 'group must be left out: the key has no fair groups'],
      ['groups', 'group=', `group must be ${TEXT}`],
      ['groups', `group=${'%C3%A4'.repeat(33)}`, `group must be ${TEXT}`],
      ['groups', 'group=a%0Ab', `group must be ${TEXT}`],
      // Of a caller that encodes in Latin-1. Other bytes must not be the same group.
      ['groups', 'group=M%FCller', `group must be ${TEXT}`],
      ['groups', 'group=a&group=b', 'group must be given once'],
    ])('of the key %s with %s is rejected', async (key, query, error) => {
      const answer = await check(key, `?${query}${peek}`);
      expect([answer.status, answer.json()]).toEqual([400, { error, key }]);
      expect(limiter.asked).toEqual([]);
    });
  });

  test('a check without parameters is of its list', async () => {
    await check('lanes');
    await check('groups');
    expect(lists()).toEqual([BATCH, NO_GROUP]);
  });

  test('elements of bulk requests are of their lists, or rejected alone', async () => {
    const results = await checkMany(app.url, [
      { key: 'lanes', lane: 'interactive' },
      { key: 'lanes' },
      { key: 'groups', group: 'gold é' },
      { key: 'groups', lane: 'batch' },
      { key: 'lanes', lane: 'bulk' },
      { key: 'lanes', lane: 7 },
      { key: 'groups', group: 'a'.repeat(65) },
      { key: 'neither' },
    ]);
    expect(results.map((result) => ('error' in result ? result.error : result.status))).toEqual([
      200,
      200,
      200,
      'lane must be left out: the key has no lanes',
      'lane must be one of interactive, batch',
      'lane must be a text',
      `group must be ${TEXT}`,
      200,
    ]);
    expect(lists()).toEqual([INTERACTIVE, BATCH, GOLD, undefined]);
  });

  describe('a denial', () => {
    const LEFT = { remaining: 0, resetMillis: 5000 };
    const SHARE = { ...ownLimit(60_000, 4), name: 'batch-share', lanes: ['batch'], ...LEFT };
    const quota = { limits: [{ ...ownLimit(1000, 9), ...LEFT, resetMillis: 700 }, SHARE] } as const;

    /** The answer to a check that the limiter denies for this reason. */
    async function denied(key: string, query: string, reason: DenialReason) {
      const stub = new StoreLimiterStub();
      const served = await serve(httpAppOver(stub, { policyOf: (of) => limiter.policyOf(of) }));
      const answer = send(served.url, 'POST', `${ratePath(key)}?${query}`);
      const { waiter } = await until(() => stub.asked[0]);
      waiter.decide({ outcome: 'denied', reason, quota });
      try {
        return await answer;
      } finally {
        await served.close();
      }
    }

    test("is a 429 if the group's places are taken", async () => {
      const { status, json } = await denied('groups', 'canWait=true', 'queue_full_of_group');
      expect([status, json()]).toEqual([429, { error: 'rate limit exceeded', key: 'groups' }]);
    });

    test('names a limit of the lane, and shows all limits that count it', async () => {
      const { headers, json } = await denied('lanes', 'lane=batch', 'limit_reached');
      expect(json()).toMatchObject({ limit: 'batch-share' });
      expect(headers['retry-after']).toBe('5');
      expect(headers.ratelimit).toBe('"default";r=0;t=1, "batch-share";r=0;t=5');
    });

    test('neither names nor shows a limit of other lanes', async () => {
      const { headers, json } = await denied('lanes', 'lane=interactive', 'limit_reached');
      expect(json()).toEqual({ error: 'rate limit exceeded', key: 'lanes' });
      expect(headers['retry-after']).toBe('1');
      expect(headers.ratelimit).toBe('"default";r=0;t=1');
      expect(headers['ratelimit-policy']).toBe('"default";q=9;w=1');
    });
  });
});

const HOUR = { window_millis: 3_600_000, max_requests_per_window: 1 };
const MILLIS = expect.any(Number) as number;

describe('the queue in /debug/{key}', () => {
  const lanes = uniqueKey();
  const app = useApp(undefined, {
    rules: [
      {
        key_pattern: lanes,
        ...HOUR,
        queue: { lanes: [{ name: 'interactive' }, { name: 'batch' }] },
        limits: [{ ...HOUR, name: 'share', lanes: ['batch'] }],
      },
    ],
  });
  const wait = useWaiters(app);

  test('has the lanes with waiters, the longest first, and the lanes of a limit', async () => {
    await wait(lanes, 'lane=interactive', 'lane=batch', 'hits=1');

    expect(await debugState(app.url, lanes)).toMatchObject({
      NumWaiting: 3,
      Queue: {
        NumLists: 2,
        Lists: [
          { Lane: 'batch', NumWaiting: 2, OldestMillis: MILLIS },
          { Lane: 'interactive', NumWaiting: 1, OldestMillis: MILLIS },
        ],
      },
      Limits: [{ Name: 'share', Lanes: ['batch'] }],
    });
    expect((await send(app.url, 'GET', '/debug')).text).not.toContain('"Queue"');
  });
});
