import { BodyBuffer, MAX_BODY_BYTES } from '../../../../src/http/intake/body-buffer.js';

/** A body of these chunks, and how many bytes of the budget it has taken. */
function bodyOf(chunks: readonly Buffer[], announced?: number) {
  let taken = 0;
  const body = new BodyBuffer({ take: (bytes) => (taken += bytes) }, announced);
  for (const chunk of chunks) body.append(chunk);
  return { body, taken: () => taken };
}

const oneByte = (): Buffer => Buffer.allocUnsafeSlow(1).fill('x');

test.each([
  ['one byte each', Array.from({ length: 100_000 }, oneByte), undefined],
  ['one byte each, and announced', Array.from({ length: 100_000 }, oneByte), 100_000],
  ['a few, and many', [1, 70_000, 1, 30_000].map((size) => Buffer.alloc(size, 'y')), undefined],
  ['one', [Buffer.alloc(65_536, 'z')], 65_536],
  ['none', [], undefined],
])(
  'a body in chunks of %s is kept unchanged, in the memory that it has taken',
  (_, chunks, announced) => {
    const { body, taken } = bodyOf(chunks, announced);
    const whole = Buffer.concat(chunks);

    expect(body.bytes.equals(whole)).toBe(true);
    expect(taken()).toBe(body.bytes.buffer.byteLength);
    expect(taken()).toBeLessThanOrEqual(announced ?? 2 * whole.length);
  },
);

test('a body of the maximum size takes no more memory, and one more byte is too large', () => {
  const chunks = Array.from({ length: MAX_BODY_BYTES / 1024 }, () => Buffer.alloc(1024));
  const { body, taken } = bodyOf(chunks);

  expect(taken()).toBe(MAX_BODY_BYTES);
  expect(() => {
    body.append(oneByte());
  }).toThrow('the body must be at most 1048576 bytes');
});
