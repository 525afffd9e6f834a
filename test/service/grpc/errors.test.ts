import { deflateSync, gzipSync } from 'node:zlib';

import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, rulesFile, startGrpcApp } from '../../support/grpc-app.js';
import { type Asked, failureOf, of, useGateways } from '../../support/grpc-gateway.js';
import {
  messageFrame,
  METHOD_PATH,
  type RawCalls,
  requestFrame,
  useRawCalls,
} from '../../support/grpc-raw.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';

/** A message that its flag says is compressed. */
function compressedFrame(message: Buffer): Buffer {
  const frame = messageFrame(message);
  frame[0] = 1;
  return frame;
}

const folder = useTemporaryFolder();
const gatewayOf = useGateways();

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
      'with a limit of 0',
      'descriptors[0].limit.requests_per_unit must be at least 1',
      { descriptors: [of('test-a', limit(0))] },
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

  test('for an override above the ceiling', async () => {
    const descriptors = [of(uniqueKey(), limit(51))];

    expect(await failureOf(gatewayOf(app).ask({ descriptors }))).toEqual([
      'PERMISSION_DENIED',
      'maxRequests must be at most 50 for this key',
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
    ['garbage', Buffer.from('ffffffffffff', 'hex')],
    ['a message that ends early', requestFrame({ descriptors: [of('test-a')] }).subarray(5, -2)],
    ['groups in each other without end', Buffer.alloc(200_000, 0x23)],
  ])('are an invalid argument: %s', async (_what, bytes) => {
    expect(await calls.send([messageFrame(bytes)])).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: 'the message must be a RateLimitRequest',
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
