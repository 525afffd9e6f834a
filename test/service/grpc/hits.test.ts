import type { Unit } from '../../../src/grpc/messages.js';
import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, type Gateway, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { useGrpcServices } from '../../support/grpc-service.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { RecordingLimiter } from '../../support/recording-limiter.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';

const start = useGrpcApps();
const gatewayOf = useGateways();

describe('the hits of a call', () => {
  let app: GrpcApp;
  let gateway: Gateway;
  let key: string;
  beforeEach(async () => {
    app = await start({ MAX_REQUESTS: '10' });
    gateway = gatewayOf(app);
    key = uniqueKey();
  });

  const approvedOf = async (of: string): Promise<number | undefined> =>
    (await debugState(app.url, of)).NumApprovedThisWindow;

  describe('hits_addend', () => {
    test('of the request is the number of approvals that each descriptor takes', async () => {
      const other = uniqueKey();
      const { statuses } = await gateway.ask({ hits_addend: 3, descriptors: [of(key), of(other)] });

      expect(statuses.map(({ limit_remaining }) => limit_remaining)).toEqual([7, 7]);
      expect([await approvedOf(key), await approvedOf(other)]).toEqual([3, 3]);
    });

    test.each([{}, { hits_addend: 0 }, { hits_addend: 1 }])(
      'of the request counts as one: %j',
      async (hits) => {
        await gateway.ask({ ...hits, descriptors: [of(key)] });

        expect(await approvedOf(key)).toBe(1);
      },
    );

    test("of a descriptor replaces the request's", async () => {
      const other = uniqueKey();
      await gateway.ask({
        hits_addend: 3,
        descriptors: [
          of(key, { hits_addend: { value: 5 } }),
          of(other, { hits_addend: { value: 1 } }),
        ],
      });

      expect([await approvedOf(key), await approvedOf(other)]).toEqual([5, 1]);
    });

    describe('of 0 in a descriptor', () => {
      const none = { hits_addend: { value: 0 } };

      test('takes nothing, and says what is left', async () => {
        const other = uniqueKey();
        await gateway.ask({ hits_addend: 4, descriptors: [of(key)] });
        const asked = { hits_addend: 3, descriptors: [of(key, none), of(other)] };
        const { overall_code, statuses } = await gateway.ask(asked);

        expect(overall_code).toBe('OK');
        expect(statuses.map(({ limit_remaining }) => limit_remaining)).toEqual([6, 7]);
        expect([await approvedOf(key), await approvedOf(other)]).toEqual([4, 3]);
      });

      test('is denied if nothing is left, and then the others take nothing', async () => {
        const other = uniqueKey();
        await gateway.ask({ hits_addend: 10, descriptors: [of(key)] });
        const alone = await gateway.ask({ descriptors: [of(key, none)] });
        const { overall_code } = await gateway.ask({ descriptors: [of(key, none), of(other)] });

        expect(alone).toMatchObject({
          overall_code: 'OVER_LIMIT',
          statuses: [{ code: 'OVER_LIMIT', limit_remaining: 0 }],
        });
        expect(headersOf(alone)).toMatchObject({ 'Retry-After': expect.any(String) as string });
        expect(overall_code).toBe('OVER_LIMIT');
        expect(await approvedOf(key)).toBe(10);
        expect((await approvedOf(other)) ?? 0).toBe(0);
      });

      test('sets no limit', async () => {
        const five = { limit: { requests_per_unit: 5, unit: 'HOUR' } } as const;
        await gateway.ask({ descriptors: [of(key, { ...none, ...five })] });

        expect((await debugState(app.url, key)).Found).toBe(false);
      });
    });

    test('above the maximum is denied, and takes nothing', async () => {
      const { statuses } = await gateway.ask({ hits_addend: 11, descriptors: [of(key)] });

      expect(statuses).toMatchObject([{ code: 'OVER_LIMIT', limit_remaining: 10 }]);
      expect(await approvedOf(key)).toBe(0);
    });

    test.each<[object, string]>([
      [{ hits_addend: 1_000_000_001 }, 'hits_addend must be at most 1000000000'],
      [
        { descriptors: [{ value: 1_000_000_001 }] },
        'descriptors[0].hits_addend.value must be at most 1000000000',
      ],
      [
        { descriptors: [{ value: 1 }, { value: 2 ** 60 }] },
        'descriptors[1].hits_addend.value must be at most 1000000000',
      ],
    ])('%j is rejected, and takes nothing', async (asked, text) => {
      const { descriptors = [undefined], ...rest } = asked as {
        descriptors?: ({ value: number } | undefined)[];
      };
      const request = {
        ...rest,
        descriptors: descriptors.map((hits) => of(key, hits && { hits_addend: hits })),
      };

      expect(await failureOf(gateway.ask(request))).toEqual(['INVALID_ARGUMENT', text]);
      expect((await debugState(app.url, key)).Found).toBe(false);
    });
  });

  describe('is_negative_hits', () => {
    const negative = (value?: number) => ({
      ...(value !== undefined && { hits_addend: { value } }),
      is_negative_hits: true,
    });
    const take = (hits_addend: number) => gateway.ask({ hits_addend, descriptors: [of(key)] });

    test('gives hits back, also in a full key, and says what is left', async () => {
      await take(10);
      const reply = await gateway.ask({ descriptors: [of(key, negative(4))] });

      expect(reply).toMatchObject({
        overall_code: 'OK',
        statuses: [{ code: 'OK', limit_remaining: 4, current_limit: { requests_per_unit: 10 } }],
      });
      expect(headersOf(reply)).toMatchObject({ 'X-RateLimit-Remaining': '4' });
      expect(await approvedOf(key)).toBe(6);
    });

    test("takes the request's hits if the descriptor has none of its own, and 1 without any", async () => {
      await take(9);
      await gateway.ask({ hits_addend: 3, descriptors: [of(key, negative())] });
      expect(await approvedOf(key)).toBe(6);
      await gateway.ask({ descriptors: [of(key, negative())] });
      expect(await approvedOf(key)).toBe(5);
    });

    test('of 0 hits takes nothing and gives nothing back', async () => {
      await take(9);
      await gateway.ask({ descriptors: [of(key, negative(0))] });
      expect(await approvedOf(key)).toBe(9);
    });

    test('is done only if all other descriptors are approved', async () => {
      const full = uniqueKey();
      await gateway.ask({ hits_addend: 10, descriptors: [of(full)] });
      await take(5);
      const descriptors = [of(key, negative(5)), of(full)];
      const denied = await gateway.ask({ descriptors });

      expect([denied.overall_code, denied.statuses.map(({ code }) => code)]).toEqual([
        'OVER_LIMIT',
        ['UNKNOWN', 'OVER_LIMIT'],
      ]);
      expect(await approvedOf(key)).toBe(5);

      const other = uniqueKey();
      const reply = await gateway.ask({ descriptors: [of(key, negative(5)), of(other)] });
      expect(reply.statuses.map(({ limit_remaining }) => limit_remaining)).toEqual([10, 9]);
      expect([await approvedOf(key), await approvedOf(other)]).toEqual([0, 1]);
    });

    test('takes the scope release, and without it the others take nothing', async () => {
      const checker = { name: 'checker', token: 'token-that-may-check', scopes: ['check'] };
      const releaser = {
        name: 'releaser',
        token: 'token-to-release',
        scopes: ['check', 'release'],
      };
      const guarded = await start({}, { tokens: [checker, releaser] });
      const asked = { descriptors: [of(uniqueKey()), of(key, negative(1))] };
      const as = (caller: { token: string }) => ({ headers: { ...bearer(caller) } });

      expect(await failureOf(gatewayOf(guarded).ask(asked, as(checker)))).toEqual([
        'PERMISSION_DENIED',
        'the token lacks the scope release',
      ]);
      const peek = { descriptors: [of(key, negative(0))] };
      expect(await gatewayOf(guarded).ask(peek, as(checker))).toMatchObject({ overall_code: 'OK' });
      const { statuses } = await gatewayOf(guarded).ask(asked, as(releaser));
      expect(statuses[0]!.limit_remaining).toBe(statuses[0]!.current_limit!.requests_per_unit - 1);
    });

    test.each(['sliding_window', 'token_bucket'])(
      'is rejected in a key whose limit is a %s, and the others take nothing',
      async (ALGORITHM) => {
        const paced = await start({ ALGORITHM });
        const other = uniqueKey();
        const asked = { descriptors: [of(other), of(key, negative(1))] };

        expect(await failureOf(gatewayOf(paced).ask(asked))).toEqual([
          'INVALID_ARGUMENT',
          `descriptors[1].is_negative_hits must be false: the limit of its key is a ${ALGORITHM}, and only fixed windows take hits back`,
        ]);
        expect((await debugState(paced.url, other)).Found).toBe(false);
      },
    );
  });
});

describe("a descriptor's own limit", () => {
  let app: GrpcApp;
  let gateway: Gateway;
  let key: string;
  beforeEach(async () => {
    app = await start({ MAX_REQUESTS: '2', WINDOW_MILLIS: '60000' });
    gateway = gatewayOf(app);
    key = uniqueKey();
  });

  const limited = (requests_per_unit: number, unit: Unit = 'MINUTE') =>
    of(key, { limit: { requests_per_unit, unit } });

  test('replaces the maximum', async () => {
    const response = await gateway.ask({ descriptors: [limited(5)] });

    expect(response.statuses).toMatchObject([
      {
        code: 'OK',
        current_limit: { requests_per_unit: 5, unit: 'MINUTE' },
        limit_remaining: 4,
      },
    ]);
    expect(headersOf(response)).toMatchObject({ 'X-RateLimit-Limit': '5' });
    expect((await debugState(app.url, key)).Config?.MaxRequestsPerWindow).toBe(5);
  });

  test.each<Unit>(['MINUTE', 'SECOND', 'UNKNOWN'])('of 0 per %s denies', async (unit) => {
    const { overall_code, statuses } = await gateway.ask({ descriptors: [limited(0, unit)] });

    expect([overall_code, statuses]).toMatchObject([
      'OVER_LIMIT',
      [{ code: 'OVER_LIMIT', current_limit: { requests_per_unit: 0 }, limit_remaining: 0 }],
    ]);
    expect((await gateway.ask({ descriptors: [limited(1)] })).overall_code).toBe('OK');
  });

  test('is rejected for a window of another length, and changes nothing', async () => {
    await approve(app.url, key);

    expect(await failureOf(gateway.ask({ descriptors: [limited(9, 'SECOND')] }))).toEqual([
      'INVALID_ARGUMENT',
      'descriptors[0].limit.unit must be as long as the window of its key (60000 ms)',
    ]);
    expect(await debugState(app.url, key)).toMatchObject({
      Config: { MaxRequestsPerWindow: 2 },
      NumApprovedThisWindow: 1,
    });
  });
});

const BY_DEFAULT = { GRPC_KEY_TEMPLATE: '{domain}:{entries}' };

test('gateways and callers over HTTP share a key if it is {values}', async () => {
  const app = await start();
  const gateway = gatewayOf(app);
  const [first, second] = [uniqueKey(), uniqueKey()];
  await approve(app.url, first);
  expect((await gateway.askFor(first)).overall_code).toBe('OVER_LIMIT');

  expect((await gateway.askFor(second)).overall_code).toBe('OK');
  expect((await send(app.url, 'POST', ratePath(second))).status).toBe(429);
});

test('a key that an empty value makes empty is rejected', async () => {
  const app = await start();

  expect(await failureOf(gatewayOf(app).askFor(''))).toEqual([
    'INVALID_ARGUMENT',
    'key must be 1 to 512 bytes of UTF-8, not 0',
  ]);
});

test('rules match the keys, also keys that are cut', async () => {
  const app = await start(
    { ...BY_DEFAULT },
    {
      rules: [
        {
          key_pattern: 'edge:path=/reports/.*',
          key_pattern_is_regex: true,
          name: 'reports',
          max_requests_per_window: 7,
          window_millis: 60_000,
        },
        { key_pattern: 'edge:path=/free', max_requests_per_window: 9 },
        {
          key_pattern: 'edge:path=/reports/.*,user=alice',
          key_pattern_is_regex: true,
          max_requests_per_window: 8,
        },
      ],
    },
  );
  const gateway = gatewayOf(app);
  const limitOf = async (value: string, user?: string): Promise<unknown> => {
    const entries = [{ key: 'path', value }, ...(user ? [{ key: 'user', value: user }] : [])];
    const descriptors = [{ entries }];
    const { statuses } = await gateway.ask({ domain: 'edge', descriptors });
    return statuses[0]?.current_limit;
  };

  const reports = { requests_per_unit: 7, unit: 'MINUTE', name: 'reports' };
  expect(await limitOf('/reports/1')).toEqual(reports);
  const long = `/reports/${'a'.repeat(1000)}`;
  expect(await limitOf(long)).toEqual(reports);
  expect(await limitOf(long, 'alice')).toEqual({ ...reports, requests_per_unit: 8 });
  expect(await limitOf(long, 'bob')).toEqual(reports);
  expect(await limitOf('/free')).toEqual({ requests_per_unit: 9, unit: 'HOUR', name: 'default' });
  expect(await limitOf('/other')).toEqual({ requests_per_unit: 1, unit: 'HOUR', name: 'default' });
});

test('a descriptor that is twice in a request counts twice', async () => {
  const app = await start({ MAX_REQUESTS: '2' });
  const gateway = gatewayOf(app);
  const key = uniqueKey();
  const twice = { descriptors: [of(key), of(key)] };
  const response = await gateway.ask(twice);
  expect([response.overall_code, headersOf(response)['X-RateLimit-Remaining']]).toEqual([
    'OK',
    '0',
  ]);

  expect((await gateway.ask(twice)).overall_code).toBe('OVER_LIMIT');
});

describe('lanes and groups', () => {
  const RULES = [
    {
      key_pattern: 'edge:path=/llm',
      queue: { lanes: [{ name: 'interactive', head_start_millis: 30_000 }, { name: 'batch' }] },
      max_wait_millis: 5000,
    },
    { key_pattern: 'edge:path=/vendor', queue: { fair: true, weights: { gold: 4 } } },
  ];

  const start = useGrpcServices();

  /** The answer of the descriptors, each of whose entries is `<key>=<value>`, and what the limiter was asked. */
  async function ask(...descriptors: readonly (readonly string[])[]) {
    const limiter = new RecordingLimiter(...RULES);
    const environment = { GRPC_KEY_TEMPLATE: '{domain}:{entries}' };
    const gateway = gatewayOf(await start(limiter, { environment, rules: RULES }));
    const answer = gateway.ask({
      domain: 'edge',
      descriptors: descriptors.map((entries) => ({
        entries: entries.map((entry) => {
          const [key = '', value = ''] = entry.split('=');
          return { key, value };
        }),
      })),
    });
    return { answer, limiter };
  }

  test('entries name the lane or the group, and are no part of the key', async () => {
    const { answer, limiter } = await ask(
      ['lane=interactive', 'path=/llm'],
      ['path=/llm'],
      ['path=/vendor', 'group=gold'],
      ['path=/vendor'],
      ['path=/other'],
    );
    expect((await answer).overall_code).toBe('OK');
    const askedOf = (key: string) =>
      limiter.asked
        .filter((request) => request.key === `edge:path=/${key}`)
        .map(({ list }) => list);
    expect(askedOf('llm')).toEqual([
      { kind: 'lane', name: 'interactive', headStartMillis: 30_000 },
      { kind: 'lane', name: 'batch', headStartMillis: 0 },
    ]);
    expect(askedOf('vendor')).toMatchObject([
      { kind: 'group', name: 'gold', weight: 4 },
      { kind: 'group', name: '', weight: 1 },
    ]);
    expect(askedOf('other')).toEqual([undefined]);
  });

  test('entries of keys without lanes or groups are a part of the key, as they were', async () => {
    const { answer, limiter } = await ask(
      ['path=/other', 'lane=batch'],
      ['path=/llm', 'group=gold'],
      ['lane=batch'],
    );
    expect((await answer).overall_code).toBe('OK');
    expect(limiter.asked).toMatchObject([
      { key: 'edge:path=/other,lane=batch' },
      { key: 'edge:path=/llm,group=gold' },
      { key: 'edge:lane=batch' },
    ]);
  });

  test.each<[entries: readonly string[], message: string]>([
    [['path=/llm', 'lane=bulk'], 'lane must be one of interactive, batch'],
    [
      ['path=/vendor', 'group='],
      'descriptors[0].entries[1].value must be text of 1 to 64 bytes of UTF-8 without control characters',
    ],
    [['path=/vendor', 'group=a', 'group=b'], 'descriptors[0].entries must have group once'],
  ])('a descriptor with the entries %j is an invalid argument', async (entries, message) => {
    const { answer, limiter } = await ask(entries);
    expect(await failureOf(answer)).toEqual(['INVALID_ARGUMENT', message]);
    expect(limiter.asked).toEqual([]);
  });
});
