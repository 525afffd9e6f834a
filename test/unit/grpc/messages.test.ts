import { extent } from '../../support/extent.js';
import { keyTemplate } from '../../../src/grpc/key-template.js';
import type { Entry } from '../../../src/grpc/messages.js';
import { decodeRequest, encodeReply, UnreadableMessage } from '../../../src/grpc/message-codec.js';
import { METHOD as method } from '../../support/grpc-gateway.js';
import fc from '../../support/properties.js';

/** Few characters, so that separators come often, and next to each other. */
const text = fc.string({
  unit: fc.constantFrom('a', '%', ',', '=', ':', '2', 'C', '~', 'é', '💧'),
});
const domains = text.filter((domain) => domain !== '');
const entries = fc.array(fc.record({ key: domains, value: text }), { minLength: 1, maxLength: 3 });

const keyOf = keyTemplate('{domain}:{entries}');

test.each([
  ['{domain}:{entries}', 'edge', { path: '/' }, 'edge:path=/'],
  ['{domain}:{entries}', 'edge', { path: '/a', ip: '::1' }, 'edge:path=/a,ip=::1'],
  ['{domain}:{entries}', 'a:b,c', { 'd=e': 'f=g,h%' }, 'a%3Ab%2Cc:d%3De=f=g%2Ch%25'],
  ['{domain}:{entries}', 'edge', { generic: '' }, 'edge:generic='],
  ['{values}', 'edge', { tenant: 'tenant-7' }, 'tenant-7'],
  ['limits/{values}', 'edge', { a: '1,2', b: '3' }, 'limits/1%2C2,3'],
  ['{entries}@{domain}', '{values}', { '{domain}': '$&' }, '{domain}=$&@{values}'],
])('by %s the domain %j with %j is its key', (template, domain, given, expected) => {
  const descriptor = Object.entries(given).map(([key, value]) => ({ key, value }));
  expect(keyTemplate(template)(domain, descriptor)).toBe(expected);
});

/** Reads the entries back from the key that the template made. */
function entriesIn(key: string): Entry[] {
  return key.split(',').map((entry) => {
    const end = entry.indexOf('=');
    return {
      key: decodeURIComponent(entry.slice(0, end)),
      value: decodeURIComponent(entry.slice(end + 1)),
    };
  });
}

test('no two descriptors have the same key: domain and entries can be read back from it', () => {
  fc.assert(
    fc.property(domains, entries, (domain, given) => {
      const key = keyOf(domain, given);
      const end = key.indexOf(':');
      expect(decodeURIComponent(key.slice(0, end))).toBe(domain);
      expect(entriesIn(key.slice(end + 1))).toEqual(given);
    }),
    { numRuns: extent(300, 2000) },
  );
});

test('no two lists of entries have the same key without the domain', () => {
  const byEntries = keyTemplate('{entries}');
  fc.assert(
    fc.property(entries, (given) => {
      expect(entriesIn(byEntries('edge', given))).toEqual(given);
    }),
    { numRuns: extent(300, 2000) },
  );
});

describe('a key that would be too long', () => {
  const pathOf = (value: string): string => keyOf('edge', [{ key: 'path', value }]);
  const longest = 512 - Buffer.byteLength('edge:path=');

  test('stays as it is up to 512 bytes', () => {
    expect(pathOf('a'.repeat(longest))).toBe(`edge:path=${'a'.repeat(longest)}`);
  });

  test('is cut in the middle of its value, where the digest of the whole is', () => {
    expect(pathOf('a'.repeat(longest + 1))).toMatch(/^edge:path=a{357}%~[\w-]{22}%~a{119}$/);
  });

  test('keeps its entries, and the values that are not among the longest', () => {
    const [long, longer] = ['a'.repeat(600), 'b'.repeat(100_000)];
    const entries = { path: `/api/${long}`, user: 'alice', agent: `${longer}end`, ip: '::1' };
    const key = keyOf(
      'edge',
      Object.entries(entries).map(([name, value]) => ({ key: name, value })),
    );

    expect(key).toMatch(/^edge:path=\/api\/a+%~[\w-]{22}%~a+,user=alice,agent=b+%~%~b+end,ip=::1$/);
    expect(Buffer.byteLength(key)).toBeGreaterThan(512 - 2);
  });

  test('has all its entries if there are many, and never more than 512 bytes', () => {
    const long = fc.record({
      key: domains,
      value: fc.tuple(text, fc.nat(700)).map(([of, times]) => of.repeat(times)),
    });
    const many = fc.array(long, { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(domains, many, (domain, given) => {
        const key = keyOf(domain, given);
        const names = key.slice(key.indexOf(':') + 1).split(',');
        expect(Buffer.byteLength(key)).toBeLessThanOrEqual(512);
        expect(names.map((entry) => decodeURIComponent(entry.split('=')[0]!))).toEqual(
          given.map((entry) => entry.key),
        );
      }),
      { numRuns: extent(100, 1000) },
    );
  });

  test('is cut as a whole if its names alone are too long', () => {
    expect(keyOf('d'.repeat(600), [{ key: 'a', value: 'b' }])).toMatch(/^d{488}%~[\w-]{22}$/);
  });

  test('differs from another that differs in its last character only', () => {
    const long = 'a'.repeat(5000);

    expect(pathOf(`${long}b`)).not.toBe(pathOf(`${long}c`));
    expect(pathOf(`${long}b`)).toBe(pathOf(`${long}b`));
  });

  test('is never cut within a character, nor within one that is encoded', () => {
    fc.assert(
      fc.property(
        fc.nat(6),
        fc.constantFrom('é', '€', '💧', '%', ','),
        fc.nat(6),
        (start, character, end) => {
          const key = pathOf('a'.repeat(start) + character.repeat(600) + 'a'.repeat(end));
          const kept = key.slice('edge:path='.length).split(/%~[\w-]{22}%~/);

          expect(Buffer.byteLength(key)).toBeLessThanOrEqual(512);
          expect(Buffer.byteLength(key)).toBeGreaterThan(512 - 7);
          expect(kept).toHaveLength(2);
          for (const part of kept) {
            expect(
              part.replaceAll(encodeURIComponent(character), '').replaceAll(character, ''),
            ).toMatch(/^a*$/);
          }
          expect(Buffer.from(key).toString()).toBe(key);
        },
      ),
    );
  });

  test('differs from the key of a descriptor with the cut text as its value', () => {
    const cut = pathOf('a'.repeat(600)).slice('edge:path='.length);

    expect(pathOf(cut)).not.toBe(`edge:path=${cut}`);
  });
});

const ENTRIES = [0x0a, 0x06, 0x0a, 0x01, 0x61, 0x12, 0x01, 0x62];

/** A request of the domain `d` with a descriptor of the entry `a=b` and these bytes more. */
function requestWith(...bytes: readonly number[]): Buffer {
  const descriptor = [...ENTRIES, ...bytes];
  return Buffer.from([0x0a, 0x01, 0x64, 0x12, descriptor.length, ...descriptor]);
}

test.each([
  ['absent', [], null],
  ['without a value, as Envoy writes 0,', [0x1a, 0x00], { value: 0 }],
  ['of 0', [0x1a, 0x02, 0x08, 0x00], { value: 0 }],
  ['of 300', [0x1a, 0x03, 0x08, 0xac, 0x02], { value: 300 }],
])('hits_addend of a descriptor %s is read as a number', (_, bytes, expected) => {
  expect(decodeRequest(requestWith(...bytes))).toStrictEqual({
    domain: 'd',
    hits_addend: 0,
    descriptors: [
      {
        entries: [expect.objectContaining({ key: 'a', value: 'b' })],
        limit: null,
        hits_addend: expected,
        is_negative_hits: false,
      },
    ],
  });
});

/** Encoded and decoded by protobufjs, from `proto/`. */
const units = fc.constantFrom('UNKNOWN' as const, 'SECOND' as const, 'YEAR' as const);
const numbers = fc.oneof(fc.nat(300), fc.nat(2 ** 31 - 1));
const limits = fc.record({ requests_per_unit: numbers, unit: units });
const pairs = fc.record({
  key: fc.string({ unit: 'grapheme' }),
  value: fc.string({ unit: 'grapheme' }),
});

test('a request is read as protobufjs writes it', () => {
  const descriptors = fc.record({
    entries: fc.array(pairs),
    limit: fc.option(limits),
    hits_addend: fc.option(fc.record({ value: fc.oneof(numbers, fc.constant(2 ** 40)) })),
    is_negative_hits: fc.boolean(),
  });
  const requests = fc.record({
    domain: fc.string(),
    descriptors: fc.array(descriptors, { maxLength: 4 }),
    hits_addend: numbers,
  });
  fc.assert(
    fc.property(requests, (request) => {
      expect(decodeRequest(method.requestSerialize(request))).toEqual(request);
    }),
    { numRuns: extent(200, 2000) },
  );
});

test('a reply is written so that protobufjs reads it', () => {
  const codes = fc.constantFrom('UNKNOWN' as const, 'OK' as const, 'OVER_LIMIT' as const);
  const statuses = fc.record({
    code: codes,
    current_limit: limits.chain((limit) => fc.string().map((name) => ({ ...limit, name }))),
    limit_remaining: numbers,
    duration_until_reset: fc.record({ seconds: numbers, nanos: numbers }),
  });
  const replies = fc.record({
    overall_code: codes,
    statuses: fc.array(statuses, { maxLength: 100 }),
    response_headers_to_add: fc.array(pairs),
  });
  fc.assert(
    fc.property(replies, (reply) => {
      const frame = encodeReply(reply);
      expect([frame[0], frame.readUInt32BE(1)]).toEqual([0, frame.length - 5]);
      expect(method.responseDeserialize(frame.subarray(5))).toMatchObject(reply);
    }),
    { numRuns: extent(200, 2000) },
  );
});

test('bytes that are no request are told to be none, and unknown fields are skipped', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const known = requestWith();
      try {
        expect(decodeRequest(Buffer.concat([known, bytes])).descriptors).toBeDefined();
      } catch (error) {
        expect(error).toBeInstanceOf(UnreadableMessage);
      }
    }),
    { numRuns: extent(500, 20_000) },
  );
  // A varint, 64 bits, bytes, a group with a varint, 32 bits.
  const unknown = [0x50, 1, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0x52, 1, 9, 0x53, 0x50, 1, 0x54, 0x55];
  const all = Buffer.concat([Buffer.from([...unknown, 1, 2, 3, 4]), requestWith()]);
  expect(decodeRequest(all)).toStrictEqual(decodeRequest(requestWith()));
});
