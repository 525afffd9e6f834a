import { deflateSync, gzipSync } from 'node:zlib';

import type { Limiter } from '../../../src/limiter/limiter.js';
import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, rulesFile, startGrpcApp } from '../../support/grpc-app.js';
import { type Asked, codesOf, failureOf, of, useGateways } from '../../support/grpc-gateway.js';
import {
  messageFrame,
  METHOD_PATH,
  type RawCalls,
  requestFrame,
  useRawCalls,
} from '../../support/grpc-raw.js';
import { type GrpcService, useGrpcServices } from '../../support/grpc-service.js';
import { smallLimiter } from '../../support/http-service.js';
import { quotaOf } from '../../support/quota.js';
import type { LogLine } from '../../support/replica-process.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const folder = useTemporaryFolder();
const gatewayOf = useGateways();
const start = useGrpcServices();

describe('errors of calls', () => {
  /** A message that its flag says is compressed. */
  function compressedFrame(message: Buffer): Buffer {
    const frame = messageFrame(message);
    frame[0] = 1;
    return frame;
  }

  let app: GrpcApp;
  beforeAll(async () => {
    app = await startGrpcApp({
      UNKNOWN_KEYS: 'deny',
      ...(await rulesFile(
        folder,
        { key_pattern: 'test-.*', key_pattern_is_regex: true, max_requests_ceiling: 50 },
        { key_pattern: 'fixed-.*', key_pattern_is_regex: true, requests_can_set_rate: false },
      )),
    });
  });
  afterAll(() => app.stop(0));

  const limit = (requests_per_unit: number, unit = 'HOUR'): object => ({
    limit: { requests_per_unit, unit },
  });

  describe('a request is an invalid argument', () => {
    test.each<[what: string, text: string, request: Asked]>([
      ['without a domain', 'domain must not be empty', { domain: '', descriptors: [of('test-a')] }],
      ['without descriptors', 'descriptors must have at least one descriptor', { descriptors: [] }],
      [
        'with 101 descriptors',
        'descriptors must have at most 100 descriptors',
        { descriptors: Array.from({ length: 101 }, () => of('test-a')) },
      ],
      [
        'with a descriptor without entries',
        'descriptors[1].entries must have at least one entry',
        { descriptors: [of('test-a'), { entries: [] }] },
      ],
      [
        'with an entry without a key',
        'descriptors[0].entries[1].key must not be empty',
        {
          descriptors: [
            {
              entries: [
                { key: 'a', value: 'test-a' },
                { key: '', value: 'b' },
              ],
            },
          ],
        },
      ],
      [
        'with a limit above a billion',
        'descriptors[0].limit.requests_per_unit must be at most 1000000000',
        { descriptors: [of('test-a', limit(1_000_000_001))] },
      ],
      [
        'with a limit of an unknown unit',
        'descriptors[0].limit.unit must be as long as the window of its key (3600000 ms)',
        { descriptors: [of('test-a', limit(5, 'UNKNOWN'))] },
      ],
    ])('%s', async (_what, text, request) => {
      expect(await failureOf(gatewayOf(app).ask(request))).toEqual(['INVALID_ARGUMENT', text]);
      expect((await debugState(app.url, 'test-a')).Found).toBe(false);
    });
  });

  describe('a request is rejected with PERMISSION_DENIED', () => {
    test('for a key that no rule matches, and takes nothing of the others', async () => {
      const key = uniqueKey();

      expect(
        await failureOf(gatewayOf(app).ask({ descriptors: [of(key), of(`other-${key}`)] })),
      ).toEqual(['PERMISSION_DENIED', 'no rule matches the key']);
      expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
    });

    test('for an override that is forbidden', async () => {
      const descriptors = [of(`fixed-${uniqueKey()}`, limit(5))];

      expect(await failureOf(gatewayOf(app).ask({ descriptors }))).toEqual([
        'PERMISSION_DENIED',
        'overriding maxRequests is disabled',
      ]);
    });
  });

  describe('bytes that are not a request', () => {
    let calls: RawCalls;
    beforeEach(() => {
      calls = rawCallsTo(app);
    });
    // A later request on the same connection is still answered.
    afterEach(async () => {
      const key = uniqueKey();
      expect(await calls.ask({ descriptors: [of(key)] })).toMatchObject({ code: 'OK' });
    });
    // After that, its connection ends.
    const rawCallsTo = useRawCalls();

    test.each([
      ['be a RateLimitRequest', 'garbage', Buffer.from('ffffffffffff', 'hex')],
      [
        'be a RateLimitRequest',
        'a message that ends early',
        requestFrame({ descriptors: [of('test-a')] }).subarray(5, -2),
      ],
      ['have at most 10000 fields', 'groups in each other', Buffer.alloc(200_000, 0x23)],
    ])('are an invalid argument, which must %s: %s', async (must, _what, bytes) => {
      expect(await calls.send([messageFrame(bytes)])).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: `the message must ${must}`,
      });
    });

    test('are an invalid argument: no bytes at all', async () => {
      expect(await calls.send([messageFrame(Buffer.alloc(0))])).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: 'domain must not be empty',
      });
    });

    test.each([
      ['domain', 'DOMAIN'],
      ['descriptors[0].entries[0].key', 'KEY'],
      ['descriptors[0].entries[0].value', 'test-VALUE'],
    ])('are an invalid argument if a text is not UTF-8: %s', async (field, text) => {
      const request = {
        domain: 'DOMAIN',
        descriptors: [{ entries: [{ key: 'KEY', value: 'test-VALUE' }] }],
      };
      const bytes = requestFrame(request);
      bytes[bytes.indexOf(text) + text.length - 1] = 0xff;

      expect(await calls.send([bytes])).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: `${field} must be valid UTF-8`,
      });
    });

    test('are a valid request if a text has the replacement character itself', async () => {
      const descriptors = [of(`${uniqueKey()}\ufffd`)];

      expect(await calls.ask({ descriptors })).toMatchObject({ code: 'OK' });
    });

    test('are an invalid argument if they have too many fields', async () => {
      const entries = Array.from({ length: 10_001 }, () => ({ key: '' }));

      expect(await calls.ask({ descriptors: [{ entries }] })).toMatchObject({
        code: 'INVALID_ARGUMENT',
        details: 'the message must have at most 10000 fields',
      });
    });

    test('get RESOURCE_EXHAUSTED if they are too many', async () => {
      const { code, details } = await calls.ask({ descriptors: [of('a'.repeat(256 * 1024))] });

      expect(code).toBe('RESOURCE_EXHAUSTED');
      expect(details).toMatch(/262144/);
    });

    test.each([
      ['none', []],
      ['a part of a message', [Buffer.from('0000000009ff', 'hex')]],
      ['two messages', [messageFrame(Buffer.alloc(2)), messageFrame(Buffer.alloc(2))]],
    ])('are rejected as unimplemented if they are not one message: %s', async (_what, chunks) => {
      expect((await calls.send(chunks)).code).toBe('UNIMPLEMENTED');
    });

    test.each([
      ['gzip', gzipSync],
      ['deflate', deflateSync],
    ])('are read if they are compressed: %s', async (encoding, compress) => {
      const headers = { 'grpc-encoding': encoding };
      const message = requestFrame({ descriptors: [of(uniqueKey())] }).subarray(5);
      const frame = compressedFrame(compress(message));
      expect((await calls.send([frame], { headers })).code).toBe('OK');

      const long = await calls.send([compressedFrame(compress(Buffer.alloc(300 * 1024)))], {
        headers,
      });
      expect(long.code).toBe('RESOURCE_EXHAUSTED');
      const broken = await calls.send([compressedFrame(Buffer.from('none'))], { headers });
      expect(broken.code).toBe('INTERNAL');
    });

    test('are read in whatever pieces they come', async () => {
      const frame = requestFrame({ descriptors: [of(uniqueKey())] });
      const pieces = Array.from(frame, (byte) => Buffer.from([byte]));
      expect((await calls.send(pieces)).code).toBe('OK');
    });

    test('are rejected as unimplemented if their compression is unknown', async () => {
      const headers = { 'grpc-encoding': 'br' };

      expect(await calls.send([Buffer.from('0100000001ff', 'hex')], { headers })).toMatchObject({
        code: 'UNIMPLEMENTED',
      });
    });
  });

  describe('a call that Envoy would not send', () => {
    const rawCallsTo = useRawCalls();

    test.each([
      '/envoy.service.ratelimit.v3.RateLimitService/Other',
      '/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit',
      '/',
      '/\u00ff',
    ])('is rejected for an unknown method: %s', async (path) => {
      const { code } = await rawCallsTo(app).send([messageFrame(Buffer.alloc(0))], { path });

      expect(code).toBe('UNIMPLEMENTED');
    });

    test('is rejected for another type of content', async () => {
      const headers = { 'content-type': 'application/json' };
      const { status } = await rawCallsTo(app).send([Buffer.from('{}')], { headers });

      expect(status).toBe(415);
    });

    test('is rejected for a timeout that can not be read', async () => {
      const call = rawCallsTo(app).send([messageFrame(Buffer.alloc(0))], {
        headers: { 'grpc-timeout': 'soon' },
      });

      expect((await call).details).toContain('grpc-timeout');
    });

    test('is rejected for GET without a message', async () => {
      const call = rawCallsTo(app).send([], { path: METHOD_PATH, method: 'GET' });

      expect((await call).code).toBe('UNIMPLEMENTED');
    });
  });
});

const QUOTA = quotaOf(1000);
const FAULT = new TypeError('of the test');

const errorsIn = ({ log }: GrpcService): readonly LogLine[] =>
  log.lines.filter(({ level }) => level === 'error');

const ERROR_LINE = {
  level: 'error',
  status: 500,
  errorCode: 'INTERNAL_ERROR',
  err: expect.objectContaining({ message: FAULT.message }) as unknown,
  msg: 'call answered',
};

test.each<[what: string, check: Limiter['check']]>([
  ['rejects', () => Promise.reject(FAULT)],
  [
    'throws',
    () => {
      throw FAULT;
    },
  ],
  ['resolves without a decision', () => Promise.resolve(undefined as never)],
])(
  'a limiter that %s causes an internal error with a log line, not a denial',
  async (_what, check) => {
    const limiter = smallLimiter();
    limiter.check = check;
    const service = await start(limiter);

    expect(await failureOf(gatewayOf(service).askFor('key'))).toEqual([
      'INTERNAL',
      'internal error',
    ]);
    expect(errorsIn(service)).toMatchObject([{ level: 'error', keys: ['key'], status: 500 }]);
  },
);

test('a fault has no log line if LOG_5XX=false', async () => {
  const limiter = smallLimiter();
  limiter.check = () => Promise.reject(FAULT);
  const service = await start(limiter, { environment: { LOG_5XX: 'false' } });
  await failureOf(gatewayOf(service).askFor('key'));

  expect(errorsIn(service)).toEqual([]);
});

/** Asks for three keys, which the test decides. */
async function askForThree() {
  const limiter = new StoreLimiterStub();
  const service = await start(limiter);
  const gateway = gatewayOf(service);
  const call = gateway.begin({ descriptors: [of('a'), of('b'), of('c')] });
  await until(() => limiter.asked.length === 3);
  const waiters = limiter.asked.map(({ waiter }) => waiter);
  return { limiter, service, gateway, call, waiters };
}

test('a fault of one descriptor gives back the approvals of the others', async () => {
  const { limiter, service, call, waiters } = await askForThree();
  waiters[0]!.approve(QUOTA);
  waiters[1]!.fail(FAULT);
  waiters[2]!.approve(QUOTA);

  expect(await failureOf(call.answer)).toEqual(['INTERNAL', 'internal error']);
  expect(limiter.released).toEqual([waiters[0]!.requestId, waiters[2]!.requestId]);
  expect(errorsIn(service)).toMatchObject([ERROR_LINE]);
});

test('a fault of one descriptor is logged if another is denied, and the answer is the denial', async () => {
  const { limiter, service, call, waiters } = await askForThree();
  waiters[0]!.fail(FAULT);
  waiters[1]!.decide({ outcome: 'denied', reason: 'limit_reached', quota: QUOTA });
  waiters[2]!.approve(QUOTA);

  expect(codesOf(await call.answer)).toEqual(['UNKNOWN', 'OVER_LIMIT', 'OK']);
  expect(limiter.released).toEqual([waiters[2]!.requestId]);
  expect(errorsIn(service)).toMatchObject([
    { msg: 'descriptor not decided', err: { message: FAULT.message } },
  ]);
});

test('hits that can not be given back are a fault, and the approvals of the others are given back', async () => {
  const limiter = new StoreLimiterStub();
  limiter.operations.refund = () => Promise.reject(FAULT);
  const service = await start(limiter);
  const refund = of('b', { hits_addend: { value: 3 }, is_negative_hits: true });
  const call = gatewayOf(service).begin({ descriptors: [refund, of('a')] });
  await until(() => limiter.asked.length === 1);
  const { waiter } = limiter.asked[0]!;
  waiter.approve(QUOTA);

  expect(await failureOf(call.answer)).toEqual(['INTERNAL', 'internal error']);
  expect(limiter.released).toEqual([waiter.requestId]);
});

test('all descriptors are given back if the gateway gives up while they are decided', async () => {
  const { limiter, service, gateway, call, waiters } = await askForThree();
  waiters[0]!.approve(QUOTA);
  call.cancel();
  expect((await failureOf(call.answer))[0]).toBe('CANCELLED');
  // When a later call on the connection is answered, the service has read the end of the first.
  const other = gateway.begin({ descriptors: [of('d')] });
  await until(() => limiter.asked.length === 4);
  limiter.asked[3]!.waiter.approve(QUOTA);
  await other.answer;
  waiters[1]!.approve(QUOTA);
  waiters[2]!.approve(QUOTA);
  await until(() => limiter.released.length === 3);

  expect(limiter.released).toEqual(waiters.slice(0, 3).map(({ requestId }) => requestId));
  expect(service.log.lines.filter(({ status }) => status === 499)).toMatchObject([
    { level: 'debug', keys: ['a', 'b', 'c'] },
  ]);
});

test('an approval that can not be given back has a log line, and the answer stays', async () => {
  const { limiter, service, call, waiters } = await askForThree();
  limiter.operations.release = () => Promise.reject(FAULT);
  waiters[0]!.approve(QUOTA);
  waiters[1]!.decide({ outcome: 'denied', reason: 'limit_reached', quota: QUOTA });
  waiters[2]!.approve(QUOTA);

  expect(codesOf(await call.answer)).toEqual(['OK', 'OVER_LIMIT', 'OK']);
  expect(service.log.messages).toEqual(
    expect.arrayContaining(['approval that nobody uses not released']),
  );
});
