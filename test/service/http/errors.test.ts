import { type Timeouts, TIMEOUTS } from '../../../src/net/connection-bounds.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import {
  type ErrorCode,
  errorRow,
  ERRORS,
  type ErrorValues,
  serviceError,
} from '../../../src/service/errors.js';
import type { TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { JSON_HEADERS, sendBody } from '../../support/bulk-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import { type Answer, approve, begin, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { createUser, rulesIn } from '../../support/redis-user.js';
import { bearer } from '../../support/tokens.js';
import { sendUnended } from '../../support/unended-bodies.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { type FilesRead, useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useApps();

/** How to make a service answer with an error. */
interface Provocation<Code extends ErrorCode> {
  /** Settings of the service besides the common ones. */
  readonly environment?: () => Promise<Record<string, string>> | Record<string, string>;
  /** The files that the service reads. */
  readonly files?: FilesRead;
  /** Time limits for the test, if the service's own are too long. */
  readonly timeouts?: Partial<Timeouts>;
  readonly provoke: (app: TestApp, key: string) => Promise<Answer>;
  /** The values in the message. */
  readonly values: (key: string) => ErrorValues<Code>;
}

const ID = '0197c3a2-8b1e-7f00-8d5a-111111111111';
const CHECKER = { name: 'checker', token: 'token-for-checks-only', scopes: ['check'] };

/** Sends a text as it stands, and reads the one answer to it. */
async function sendText(app: TestApp, text: string): Promise<Answer> {
  const connection = await openConnection(app.url);
  connection.write(text);
  await connection.closed;
  const [head = '', body = ''] = connection.received.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(
      lines.map((line) => [line.split(': ')[0]!.toLowerCase(), line.replace(/^.*?: /, '')]),
    ),
    text: body,
    json: () => JSON.parse(body) as unknown,
  };
}

const nothing = () => ({});

/** Every error of the table: a new one does not compile until it is provoked here. */
const PROVOCATIONS: { readonly [Code in ErrorCode]: Provocation<Code> } = {
  INVALID_PARAMETER: {
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?canWait=perhaps`),
    values: () => ({ parameter: 'canWait', must: 'be true, false, 1 or 0' }),
  },
  UNKNOWN_PARAMETER: {
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?maxRequest=5`),
    values: () => ({ parameter: 'maxRequests', given: 'maxRequest' }),
  },
  TOO_MANY_HITS: {
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?maxRequests=2&hits=3`),
    values: () => ({ hits: 3, max: 2, bound: 'maximum', limit: 'the key' }),
  },
  WINDOW_NOT_SETTABLE: {
    environment: () => ({ ALGORITHM: 'token_bucket' }),
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?windowMillis=60000`),
    values: () => ({ algorithm: 'token_bucket' }),
  },
  INVALID_KEY_LENGTH: {
    provoke: (app, key) => send(app.url, 'POST', ratePath(key.padEnd(513, 'x'))),
    values: () => ({ min: 1, max: 512, bytes: 513 }),
  },
  INVALID_ENCODING: {
    provoke: (app, key) => send(app.url, 'DELETE', `${ratePath(key)}/%ff`),
    values: () => ({ part: 'requestId' }),
  },
  INVALID_TARGET: {
    provoke: (app, key) =>
      sendText(app, requestText('POST', `${ratePath(key)}\\b`, { Connection: 'close' })),
    values: () => ({ character: '\\', encoded: '%5C' }),
  },
  HOST_MISSING: {
    provoke: (app, key) =>
      sendText(app, `POST ${ratePath(key)} HTTP/1.1\r\nConnection: close\r\n\r\n`),
    values: nothing,
  },
  HOST_REPEATED: {
    provoke: (app, key) =>
      sendText(app, requestText('POST', ratePath(key), { Host: 'two', Connection: 'close' })),
    values: nothing,
  },
  MALFORMED_REQUEST: { provoke: (app) => sendText(app, 'no HTTP\r\n\r\n'), values: nothing },
  INVALID_BODY: {
    provoke: (app) => sendBody(app.url, 'POST', '{}'),
    values: () => ({ what: 'a JSON array' }),
  },
  PARAMETERS_IN_BODY: {
    provoke: (app, key) =>
      sendText(
        app,
        requestText('POST', ratePath(key), {
          ...JSON_HEADERS,
          'Content-Length': '10',
          Connection: 'close',
        }) + '{"hits":5}',
      ),
    values: nothing,
  },
  TOKEN_REQUIRED: {
    files: { tokens: [CHECKER] },
    provoke: (app, key) => send(app.url, 'POST', ratePath(key)),
    values: nothing,
  },
  TOKEN_UNKNOWN: {
    files: { tokens: [CHECKER] },
    provoke: (app, key) => send(app.url, 'POST', ratePath(key), bearer({ token: 'unknown' })),
    values: nothing,
  },
  SCOPE_MISSING: {
    files: { tokens: [CHECKER] },
    provoke: (app, key) => send(app.url, 'GET', `/debug/${key}`, bearer(CHECKER)),
    values: () => ({ scope: 'debug' }),
  },
  HOST_NOT_ALLOWED: {
    provoke: (app, key) => send(app.url, 'POST', ratePath(key), { Host: 'other.example:8080' }),
    values: () => ({ host: 'other.example:8080' }),
  },
  ORIGIN_NOT_ALLOWED: {
    provoke: (app, key) => send(app.url, 'POST', ratePath(key), { 'Sec-Fetch-Site': 'cross-site' }),
    values: nothing,
  },
  KEY_NOT_ALLOWED: {
    files: { tokens: [{ ...CHECKER, key_patterns: [] }] },
    provoke: (app, key) => send(app.url, 'POST', ratePath(key), bearer(CHECKER)),
    values: nothing,
  },
  OVERRIDE_FORBIDDEN: {
    environment: () => ({ REQUESTS_CAN_MOD_QUEUE: 'false' }),
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?maxRequestsInQueue=5`),
    values: () => ({ parameter: 'maxRequestsInQueue' }),
  },
  OVERRIDE_TOO_LARGE: {
    environment: () => ({ MAX_REQUESTS_CEILING: '5' }),
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?maxRequests=6`),
    values: () => ({ parameter: 'maxRequests', max: 5 }),
  },
  CORRECTION_TOO_LARGE: {
    provoke: async (app, key) => {
      const id = await approve(app.url, key, '?maxRequests=5');
      return send(app.url, 'PUT', `${ratePath(key)}/${id}?hits=51`);
    },
    values: () => ({ max: 50, hits: 51 }),
  },
  HOLD_FORBIDDEN: {
    environment: () => ({ REQUESTS_CAN_HOLD: 'false' }),
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?holdMillis=1000`),
    values: nothing,
  },
  KEY_UNKNOWN: {
    environment: () => ({ UNKNOWN_KEYS: 'deny' }),
    files: { rules: [] },
    provoke: (app, key) => send(app.url, 'POST', ratePath(key)),
    values: nothing,
  },
  REQUEST_NOT_FOUND: {
    provoke: (app, key) => send(app.url, 'DELETE', `${ratePath(key)}/unknown`),
    values: nothing,
  },
  HOLDER_NOT_FOUND: {
    provoke: (app, key) => send(app.url, 'DELETE', `${ratePath(key)}/holders/unknown`),
    values: nothing,
  },
  PATH_NOT_FOUND: {
    provoke: (app, key) => send(app.url, 'GET', `/${key}`),
    values: (key) => ({ path: `/${key}` }),
  },
  PATH_OF_OTHER_PORT: {
    environment: () => ({ ADMIN_PORT: '0' }),
    provoke: (app, key) => send(app.adminUrl, 'POST', ratePath(key)),
    values: (key) => ({ path: ratePath(key) }),
  },
  SLASH_IN_KEY: {
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}/b/c`),
    values: (key) => ({ path: `${ratePath(key)}/b/c` }),
  },
  METHOD_NOT_ALLOWED: {
    provoke: (app, key) => send(app.url, 'PATCH', ratePath(key)),
    values: () => ({ method: 'PATCH' }),
  },
  CHECK_HAS_REQUEST_ID: {
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}/7`),
    values: () => ({ method: 'POST' }),
  },
  REQUEST_ID_USED: {
    provoke: async (app, key) => {
      const path = `${ratePath(key)}?requestId=${ID}`;
      await send(app.url, 'POST', path);
      await send(app.url, 'DELETE', `${ratePath(key)}/${ID}`);
      return send(app.url, 'POST', path);
    },
    values: nothing,
  },
  PLACE_TAKEN_OVER: {
    provoke: async (app, key) => {
      await approve(app.url, key);
      const path = `${ratePath(key)}?requestId=${ID}&canWait=true`;
      const earlier = begin(app.url, 'POST', path);
      await untilWaiting(app.url, key, 1);
      const later = begin(app.url, 'POST', path);
      const answer = await earlier.answer;
      later.disconnect();
      // Otherwise the stop could come first.
      await untilWaiting(app.url, key, 0);
      return answer;
    },
    values: nothing,
  },
  PLACE_WITHDRAWN: {
    provoke: async (app, key) => {
      await approve(app.url, key);
      const waiting = begin(app.url, 'POST', `${ratePath(key)}?requestId=${ID}&canWait=true`);
      await untilWaiting(app.url, key, 1);
      await send(app.url, 'DELETE', `${ratePath(key)}/${ID}`);
      return waiting.answer;
    },
    values: nothing,
  },
  REQUEST_ID_CONFLICT: {
    provoke: async (app, key) => {
      await approve(app.url, key, `?requestId=${ID}`);
      return send(app.url, 'POST', `${ratePath(key)}?requestId=${ID}&hits=2&maxRequests=5`);
    },
    values: () => ({ parameter: 'hits' }),
  },
  REQUEST_TIMEOUT: {
    timeouts: { headMillis: 100, checkMillis: 20 },
    provoke: (app) => sendText(app, 'GET /healthz'),
    values: nothing,
  },
  BODY_TOO_LARGE: {
    provoke: (app) => sendBody(app.url, 'POST', ' '.repeat(1024 * 1024 + 1)),
    values: () => ({ max: 1024 * 1024 }),
  },
  URL_TOO_LONG: {
    provoke: (app, key) => send(app.url, 'POST', `${ratePath(key)}?`.padEnd(8193, 'x')),
    values: () => ({ max: 8192, bytes: 8193 }),
  },
  UNSUPPORTED_BODY: {
    provoke: (app) => sendBody(app.url, 'POST', '[]', { 'Content-Type': 'text/plain' }),
    values: () => ({ header: 'Content-Type', value: 'application/json' }),
  },
  RATE_LIMIT_EXCEEDED: {
    provoke: async (app, key) => {
      await approve(app.url, key);
      return send(app.url, 'POST', ratePath(key));
    },
    values: nothing,
  },
  HEADERS_TOO_LARGE: {
    provoke: (app) =>
      sendText(app, requestText('GET', '/healthz', { 'X-Large': 'x'.repeat(16 * 1024) })),
    values: nothing,
  },
  INTERNAL_ERROR: {
    environment: () => ({
      ...PATIENT_STORE,
      REDIS_URL: redis.url,
      KEY_PREFIX: `${uniqueKey()}:`,
    }),
    provoke: async (app, key) => {
      await approve(app.url, key);
      const [name] = await redis.client.keys(`*:{${key}}`);
      // The key's name in Redis holds a value that the service can not have written.
      await redis.client.set(name!, 'not a hash', 'EX', 3600);
      return send(app.url, 'POST', ratePath(key));
    },
    values: nothing,
  },
  LISTING_FORBIDDEN: {
    environment: async () => ({
      ...PATIENT_STORE,
      REDIS_URL: redis.url,
      ...(await createUser(redis.client, [...rulesIn('user'), '-scan'])),
    }),
    provoke: async (app) => {
      const answer = await send(app.url, 'GET', '/debug');
      await redis.client.call('ACL', 'LOG', 'RESET');
      return answer;
    },
    values: nothing,
  },
  STORE_UNAVAILABLE: {
    environment: () => ({ REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200' }),
    provoke: (app, key) => send(app.url, 'POST', ratePath(key)),
    values: nothing,
  },
  STORE_FULL: {
    environment: () => ({ MAX_KEYS: '1' }),
    provoke: async (app, key) => {
      await approve(app.url, uniqueKey());
      return send(app.url, 'POST', ratePath(key));
    },
    values: nothing,
  },
  KEY_FULL: {
    environment: () => ({ MAX_IDS_PER_KEY: '1', MAX_REQUESTS: '2' }),
    provoke: async (app, key) => {
      await approve(app.url, key);
      return send(app.url, 'POST', ratePath(key));
    },
    values: nothing,
  },
  SHUTTING_DOWN: {
    provoke: async (app, key) => {
      await approve(app.url, key);
      const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
      await untilWaiting(app.url, key, 1);
      await app.stop(0);
      return waiting.answer;
    },
    values: nothing,
  },
  HANDED_OVER: {
    // The embedded limiter has nobody to hand its places over to.
    environment: () => ({ ...PATIENT_STORE, REDIS_URL: redis.url }),
    provoke: async (app, key) => {
      await approve(app.url, key);
      const keeping = `?canWait=true&requestId=${ID}&keepMillis=60000`;
      const waiting = begin(app.url, 'POST', ratePath(key) + keeping);
      await untilWaiting(app.url, key, 1);
      const stopped = app.stop(60_000);
      const answer = await waiting.answer;
      await stopped;
      return answer;
    },
    values: nothing,
  },
  TOO_MANY_WAITERS: {
    environment: () => ({ MAX_WAITERS: '0' }),
    provoke: async (app, key) => {
      await approve(app.url, key);
      return send(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    },
    values: nothing,
  },
  TOO_MANY_WAITERS_OF_CALLER: {
    environment: () => ({ MAX_WAITERS_PER_CALLER: '0' }),
    files: { tokens: [CHECKER] },
    provoke: async (app, key) => {
      const headers = bearer(CHECKER);
      await send(app.url, 'POST', ratePath(key), headers);
      return send(app.url, 'POST', `${ratePath(key)}?canWait=true`, headers);
    },
    values: nothing,
  },
  NO_ROOM_FOR_BODY: {
    provoke: async (app) => {
      const [length, connections] = [1024 * 1024, BODY_BYTES.caller / (1024 * 1024)];
      // These connections are cut when the service stops.
      await sendUnended(app.url, { connections, length, sent: length - 1 });
      const answers: Answer[] = [];
      await until(async () => {
        answers.push(await sendBody(app.url, 'POST', '[]'));
        return answers.at(-1)?.status !== 200;
      });
      return answers.at(-1)!;
    },
    values: nothing,
  },
  NOT_READY: {
    environment: () => ({ REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200' }),
    provoke: (app) => send(app.url, 'GET', '/readyz'),
    values: () => ({ reasons: 'store unavailable' }),
  },
};

async function provoke(code: ErrorCode) {
  const provocation = PROVOCATIONS[code] as Provocation<ErrorCode>;
  const timeouts = { ...TIMEOUTS };
  // The service reads them when it starts.
  Object.assign(TIMEOUTS, provocation.timeouts);
  const app = await start(
    {
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      LOG_LEVEL: 'debug',
      LOG_4XX: 'true',
      ...(await provocation.environment?.()),
    },
    provocation.files,
  );
  Object.assign(TIMEOUTS, timeouts);
  const key = uniqueKey();
  const answer = await provocation.provoke(app, key);
  await app.stop(0);
  const errorCodes = app.log.flatMap((line) => ('errorCode' in line ? [line.errorCode] : []));
  return { answer, key, message: serviceError(code, provocation.values(key)).message, errorCodes };
}

describe.each(Object.keys(ERRORS) as ErrorCode[])('%s', (code) => {
  const { status, header, body, retryAfter } = errorRow(code);

  test('is answered as the table says, and logged by its code', async () => {
    const { answer, key, message, errorCodes } = await provoke(code);

    expect(answer.status).toBe(status);
    if (body === 'plain text') expect(answer.text).toBe(message);
    else {
      // `answer.json` leaves the code out.
      const sent = JSON.parse(answer.text) as Record<string, string>;
      const { error, code: itsCode, key: itsKey = key, ...more } = sent;
      expect([error, itsCode]).toEqual([message, code]);
      expect(itsKey.startsWith(key)).toBe(true);
      expect(more).toEqual({});
      expect(answer.text.includes('"key"')).toBe(body !== 'without key');
    }
    expect(errorCodes).toEqual([code]);

    const { headers } = answer;
    expect(headers).toMatchObject({
      'content-type': body === 'plain text' ? 'text/plain; charset=utf-8' : 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-correlation-id': expect.stringMatching(/./) as unknown,
    });
    expect('www-authenticate' in headers).toBe(header === 'WWW-Authenticate');
    expect('allow' in headers).toBe(header === 'Allow');
    if (header === 'Connection') expect(headers.connection).toBe('close');
    if (retryAfter === 'window') {
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(3600);
    } else expect(headers['retry-after']).toBe(retryAfter?.toString());
  });
});

describe('codes and problems', () => {
  const PROBLEM = { accept: 'application/problem+json' };
  const LIMITS = [{ name: 'day', max_hits_per_window: 1, window_millis: 86_400_000 }];

  const rules = [{ key_pattern: '.*-of-two', key_pattern_is_regex: true, limits: LIMITS }];
  const app = useApp(() => ({ MAX_REQUESTS: '2', WINDOW_MILLIS: '3600000' }), { rules });
  const key = useHttpKey(() => app);

  /** As it is sent: `Answer.json` leaves the code out. */
  const bodyOf = ({ text }: { readonly text: string }): unknown => JSON.parse(text);

  describe('an error is a problem if its client prefers one', () => {
    test('as a denial, with its policy', async () => {
      await key.approve('?hits=2');
      const denied = await key.check('', PROBLEM);

      expect([denied.status, denied.headers['content-type'], bodyOf(denied)]).toEqual([
        429,
        'application/problem+json',
        {
          type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
          title: 'Request cannot be satisfied as assigned quota has been exceeded',
          status: 429,
          detail: 'rate limit exceeded',
          key: key.name,
          code: 'RATE_LIMIT_EXCEEDED',
          'violated-policies': ['default'],
        },
      ]);
      expect(denied.headers).toMatchObject({ 'retry-after': expect.any(String) as string });
    });

    test('as a denied peek', async () => {
      await key.approve('?hits=2');
      const path = `/rate/${key.name}?peek=true`;
      expect(bodyOf(await send(app.url, 'GET', path, PROBLEM))).toMatchObject({
        status: 429,
        waitMillis: expect.any(Number) as number,
        'violated-policies': ['default'],
      });
    });

    test('as a denial by one of several limits, which it names', async () => {
      const path = `/rate/${key.name}-of-two`;
      await send(app.url, 'POST', path);
      expect(bodyOf(await send(app.url, 'POST', path, PROBLEM))).toMatchObject({
        limit: 'day',
        'violated-policies': ['day'],
      });
    });

    test('as a request that must be fixed', async () => {
      const rejected = await key.check('?hits=0', PROBLEM);
      expect([rejected.status, rejected.headers['content-type'], bodyOf(rejected)]).toEqual([
        400,
        'application/problem+json',
        {
          type: 'about:blank',
          title: 'Bad Request',
          status: 400,
          detail: 'hits must be a whole number from 1 to 1000000000',
          key: key.name,
          code: 'INVALID_PARAMETER',
        },
      ]);
    });
  });

  test.each([
    ['*/*', 'application/json'],
    ['application/json', 'application/json'],
    ['application/problem+json;q=0.5, application/json', 'application/json'],
    ['application/problem+json;q=0', 'application/json'],
    ['application/json;q=0.5, application/problem+json', 'application/problem+json'],
    ['text/html, application/problem+json', 'application/problem+json'],
  ])('with Accept: %s, an error is %s', async (accept, expected) => {
    expect((await key.check('?hits=0', { accept })).headers['content-type']).toBe(expected);
  });

  test('an approval is no problem', async () => {
    const approved = await key.check('', PROBLEM);
    expect([approved.status, approved.headers['content-type']]).toEqual([200, 'application/json']);
  });
});
