import { randomBytes, randomUUID } from 'node:crypto';

import { parseUuid, scramble, UUID_WORDS } from '../../../../src/limiter/memory/uuid.js';

const COUNT = 20_000;
/** As full as a table of ids gets. */
const SLOTS = COUNT / 0.8;

const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0');
const uuidOf = (digits: string): string =>
  digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** A UUIDv7 of the same minute. */
const ofMinute = (number: number): string =>
  uuidOf(
    hex(0x019a_bcde_0000 + 3 * number, 12) +
      `7${hex(number % 4096, 3)}` +
      randomBytes(8).toString('hex'),
  );
const countedFrom = (position: number, number: number): string =>
  uuidOf(hex(number, position).padEnd(32, '0'));

function hashOfText(id: string): number {
  const words = new Uint32Array(UUID_WORDS);
  if (!parseUuid(id, words)) throw new Error(id);
  scramble(words);
  return words[1]!;
}

test.each([
  ['that are random', () => randomUUID()],
  ['of UUIDv7 of the same minute', ofMinute],
  ['that count in the first number', (number: number) => countedFrom(8, number)],
  ['that count in the second number', (number: number) => countedFrom(16, number)],
  ['that count in the third number', (number: number) => countedFrom(24, number)],
  ['that count in the last number', (number: number) => countedFrom(32, number)],
  ['that differ in the upper half of the first number', (number: number) => countedFrom(5, number)],
])('ids %s find a slot in few steps', (_which, idOf) => {
  const taken = new Uint8Array(SLOTS);
  let steps = 0;
  for (let number = 0; number < COUNT; number += 1) {
    let slot = Math.floor((hashOfText(idOf(number)) / 2 ** 32) * SLOTS);
    for (; taken[slot] === 1; slot = (slot + 1) % SLOTS) steps += 1;
    taken[slot] = 1;
  }
  // With hashes that are random, two steps besides the first look.
  expect(steps / COUNT).toBeLessThan(4);
});

test('different ids have different numbers', () => {
  const numbers = new Set<string>();
  for (let number = 0; number < COUNT; number += 1) {
    const words = new Uint32Array([number % 5, number % 50, number % 500, number]);
    scramble(words);
    numbers.add(words.join());
  }
  expect(numbers.size).toBe(COUNT);
});
