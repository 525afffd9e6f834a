import type { OutgoingHttpHeaders } from 'node:http';

import { type Answer, approve, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import type { LogLine } from '../../support/replica-process.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { type FilesRead, useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const WINDOW_MILLIS = 3_600_000;

describe('a check', () => {
  const app = useApp(() => ({
    WINDOW_MILLIS: String(WINDOW_MILLIS),
    MAX_REQUESTS: '1',
  }));

  describe.each(['POST', 'GET'])('with %s', (method) => {
    const key = useHttpKey(() => app);
    const check = (query = ''): Promise<Answer> =>
      send(app.url, method, ratePath(key.name) + query);

    test('is approved with only a request id', async () => {
      const { status, headers, json } = await check();

      expect(status).toBe(200);
      expect(headers['content-type']).toBe('application/json');
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers).not.toHaveProperty('retry-after');
      expect(headers).not.toHaveProperty('etag');
      expect(json()).toStrictEqual({ request_id: expect.stringMatching(UUID) as unknown });
    });

    test('is denied when checks of any method have filled the window', async () => {
      await key.approve();
      const { status, headers, json } = await check();

      expect(status).toBe(429);
      expect(headers['content-type']).toBe('application/json');
      expect(headers['cache-control']).toBe('no-store');
      expect(json()).toStrictEqual({ error: 'rate limit exceeded', key: key.name });
    });
  });

  test.each(['false', '0', 'FALSE'])('does not wait with canWait=%s', async (value) => {
    const key = uniqueKey();
    await approve(app.url, key);

    expect((await send(app.url, 'POST', `/rate/${key}?canWait=${value}`)).status).toBe(429);
  });
});

describe.each([
  ['maxRequests', 'REQUESTS_CAN_SET_RATE'],
  ['maxRequestsInQueue', 'REQUESTS_CAN_MOD_QUEUE'],
  ['windowMillis', 'REQUESTS_CAN_SET_WINDOW'],
])('an override that is forbidden: %s by %s=false', (forbidden, setting) => {
  const app = useApp(() => ({ [setting]: 'false', WINDOW_MILLIS: '60000' }));
  const key = useHttpKey(() => app);

  test('is a 403 that names the override, and counts and changes nothing', async () => {
    await key.approve();
    const before = await key.state();
    for (const method of ['POST', 'GET']) {
      const answer = await send(app.url, method, `${ratePath(key.name)}?${forbidden}=5`);
      const error = `overriding ${forbidden} is disabled`;
      expect(bodyOf(answer)).toStrictEqual([403, { error, key: key.name }]);
    }
    expect(await key.state()).toStrictEqual(before);
  });
});

describe('checks with and without a question mark', () => {
  /** Checks with and without `?` take different code paths. Each path gets a service of its own. */
  const WAYS = ['', '?'] as const;

  interface Step {
    readonly method?: string;
    readonly key?: string;
    readonly headers?: OutgoingHttpHeaders | undefined;
  }

  interface Case {
    readonly settings?: Readonly<Record<string, string>>;
    readonly files?: FilesRead;
    readonly steps: readonly Step[];
    readonly statuses: readonly number[];
  }

  const ID = '00000000-0000-0000-0000-000000000000';
  const UUID = /[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}/g;

  /** The parts of an answer that must be the same on both paths. */
  function comparable({ status, headers, text }: Answer): object {
    return withoutVarying({ status, headers: { ...headers, date: undefined }, text });
  }

  function comparableLine(line: LogLine): object {
    const { url } = (line.req ?? {}) as { url?: string };
    const responseTime = typeof line.responseTime;
    return withoutVarying({
      ...line,
      time: undefined,
      port: undefined,
      req: { url },
      responseTime,
    });
  }

  /** Without the counts of rejections after the first, which are logged a second later. */
  function withoutLateCounts(log: readonly LogLine[]): LogLine[] {
    const first = log.find(isCount);
    return log.filter((line) => line === first || !isCount(line));
  }

  function isCount({ msg }: LogLine): boolean {
    return msg === 'requests rejected for their tokens';
  }

  /** Removes ids, the `?` of a path, and the seconds until a window ends. */
  function withoutVarying(value: object): object {
    const text = JSON.stringify(value)
      .replaceAll(UUID, ID)
      .replaceAll('?"', '"')
      .replaceAll(/;t=\d+|(?<="retry-after":")\d+/g, '');
    return JSON.parse(text) as object;
  }

  const CHECK: Step = { method: 'POST' };
  const HOUR = { WINDOW_MILLIS: String(WINDOW_MILLIS) };
  const LIMITS = { MAX_REQUESTS: '1' };
  const CASES: Record<string, () => Case> = {
    'approvals and denials': () => ({
      settings: LIMITS,
      steps: [CHECK, { method: 'GET' }, { method: 'GET', key: 'a.b-c_d~e:f' }],
      statuses: [200, 429, 200],
    }),
    'other methods': () => ({
      steps: [{ method: 'HEAD' }, { method: 'PATCH' }, { method: 'DELETE' }, { method: 'OPTIONS' }],
      statuses: [405, 405, 405, 405],
    }),
    'pauses without a length': () => ({
      steps: [{ method: 'PUT' }, CHECK],
      statuses: [400, 200],
    }),
    'keys at their bounds': () => ({
      steps: [
        { ...CHECK, key: 'k'.repeat(512) },
        { ...CHECK, key: 'k'.repeat(513) },
        { ...CHECK, key: '..' },
      ],
      statuses: [200, 400, 200],
    }),
    'correlation ids': () => ({
      steps: [{ ...CHECK, headers: { 'X-Correlation-ID': 'order-4711' } }],
      statuses: [200],
    }),
    'bodies, and connections that are to be closed': () => ({
      steps: [
        { ...CHECK, headers: { 'Content-Length': '0' } },
        { ...CHECK, headers: { Connection: 'close' } },
      ],
      statuses: [200, 200],
    }),
    rules: () => {
      const rule = { key_pattern: 'k', max_requests_per_window: 1, shadow: true };
      return {
        settings: { ...LIMITS, UNKNOWN_KEYS: 'deny' },
        files: { rules: [rule] },
        steps: [CHECK, CHECK, { ...CHECK, key: 'other' }],
        statuses: [200, 200, 403],
      };
    },
    'a store that is full': () => ({
      settings: { MAX_KEYS: '1' },
      steps: [CHECK, { ...CHECK, key: 'other' }],
      statuses: [200, 503],
    }),
    tokens: () => {
      const callers = [
        { name: 'a', token: 'a'.repeat(32), scopes: ['check'], key_patterns: ['k'] },
        { name: 'b', token: 'b'.repeat(32), scopes: ['release'] },
      ] as const;
      const [a, b] = callers.map((caller) => bearer(caller));
      return {
        files: { tokens: callers },
        steps: [
          CHECK,
          { ...CHECK, headers: bearer({ token: 'c'.repeat(32) }) },
          { ...CHECK, headers: b },
          { ...CHECK, headers: a },
          { ...CHECK, headers: a, key: 'other' },
        ],
        statuses: [401, 401, 403, 200, 403],
      };
    },
  };

  test.each(Object.entries(CASES))('%s are answered alike on both paths', async (_name, create) => {
    const { settings, files, steps, statuses } = create();
    const [plain, routed] = await Promise.all(
      WAYS.map(async (end) => {
        const environment = { ...HOUR, ...settings, LOG_2XX: 'true', LOG_4XX: 'true' };
        const app = await start(environment, files);
        const answers: Answer[] = [];
        for (const { method = 'POST', key = 'k', headers } of steps) {
          answers.push(await send(app.url, method, `/rate/${key}${end}`, headers));
        }
        return { answers, log: app.log };
      }),
    );
    expect(plain!.answers.map(({ status }) => status)).toEqual(statuses);
    expect(plain!.answers.map(comparable)).toEqual(routed!.answers.map(comparable));
    const [plainLog, routedLog] = [plain!, routed!].map(({ log }) =>
      withoutLateCounts(log).map(comparableLine),
    );
    expect(plainLog).toEqual(routedLog);
  });
});

describe('waits with a limit', () => {
  // So long that no turn comes while a test runs.
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));
  const key = useHttpKey(() => app);

  test('that would end too soon are a denial without a preference, and counted as such', async () => {
    await key.approve();
    const answer = await key.check('?canWait=true&maxWaitMillis=1000');
    expect(bodyOf(answer)).toEqual([429, { error: 'rate limit exceeded', key: key.name }]);
    expect(answer.headers['preference-applied']).toBeUndefined();
    const reason = { outcome: 'denied', reason: 'turn_too_late', decided_by: 'store' };
    expect((await scrape(app.url)).value('ratelimit_decisions_total', reason)).toBe(1);
  });

  test.each([
    ['?canWait=true', 'wait=5', 'wait=5'],
    ['?canWait=false', 'wait=5', undefined],
    ['', 'wait=5', undefined],
    ['?canWait=true&maxWaitMillis=0', 'wait=36000', undefined],
  ])(
    'of a check with "%s" and the preference %s have %s applied',
    async (query, Prefer, applied) => {
      await key.approve();
      const { status, headers } = await key.check(query, { Prefer });
      expect([status, headers['preference-applied']]).toEqual([429, applied]);
    },
  );

  test('have their preference applied among others, also in an approval', async () => {
    const { status, headers } = await key.check('?canWait=true', {
      Prefer: 'respond-async, wait=5',
    });
    expect([status, headers['preference-applied']]).toEqual([200, 'wait=5']);
  });

  test.each(['?maxWaitMillis=5', '?canWait=false&maxWaitMillis=5'])(
    'are a 400 without canWait, and create no key: %s',
    async (query) => {
      expect(bodyOf(await key.check(query))).toEqual([
        400,
        { error: 'maxWaitMillis must be used with canWait=true', key: key.name },
      ]);
      expect(await key.state()).toEqual({ Key: key.name, Found: false });
    },
  );
});

describe('a release', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '2' }));
  const key = useHttpKey(() => app);

  test('is answered with JSON, whether the approval is found or not', async () => {
    const requestId = await key.approve();
    for (const status of [200, 404]) {
      const answer = await key.release(requestId);
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json',
        'x-content-type-options': 'nosniff',
      });
    }
  });
});
