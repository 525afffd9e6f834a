import { decodeRequest } from '../../../src/grpc/message-codec.js';

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
