import { randomFillSync } from 'node:crypto';

/** The 32-bit numbers of a UUID. */
export const UUID_WORDS = 4;

const LENGTH = 36;
const DASH = 0x2d;
const DIGITS_PER_HALF_WORD = 4;
/** Where each half of the numbers begins, between the dashes. */
const HALVES = [0, 4, 9, 14, 19, 24, 28, 32];

/** The value of a digit by its character code; -1 for all other characters, capital letters included. */
const VALUES = new Int8Array(0x10000).fill(-1);
for (let value = 0; value < 16; value += 1) VALUES[value.toString(16).charCodeAt(0)] = value;

/** The bytes of a UUID, and the values of each. */
const BYTES = 16;
const BYTE_VALUES = 256;
/** A random number for each value of each byte: the seed of this process. */
const RANDOM = randomFillSync(new Uint32Array(BYTES * BYTE_VALUES));

/**
 * Returns a 32-bit hash of a UUID. Callers choose ids, so it has a random seed and takes all bytes: the ids of UUIDv7 of
 * one minute differ little in their first number. It is tabulation hashing, with which linear probing takes few steps
 * whatever the ids are (Pătraşcu and Thorup, 2012).
 * @param index where the numbers of the UUID begin in `words`
 */
export function hashOf(words: Uint32Array, index = 0): number {
  let hash = 0;
  for (let word = 0; word < UUID_WORDS; word += 1) {
    const number = words[index + word] ?? 0;
    const row = 4 * word * BYTE_VALUES;
    hash ^=
      (RANDOM[row + (number & 0xff)] ?? 0) ^
      (RANDOM[row + BYTE_VALUES + ((number >>> 8) & 0xff)] ?? 0) ^
      (RANDOM[row + 2 * BYTE_VALUES + ((number >>> 16) & 0xff)] ?? 0) ^
      (RANDOM[row + 3 * BYTE_VALUES + (number >>> 24)] ?? 0);
  }
  return hash >>> 0;
}

/**
 * Parses a UUID in lower case.
 * @returns false for any other text, which leaves `into` undefined
 */
export function parseUuid(text: string, into: Uint32Array): boolean {
  if (
    text.length !== LENGTH ||
    text.charCodeAt(8) !== DASH ||
    text.charCodeAt(13) !== DASH ||
    text.charCodeAt(18) !== DASH ||
    text.charCodeAt(23) !== DASH
  ) {
    return false;
  }
  let all = 0;
  // Loops by index: this runs for each approval, and iterators would take three times as long.
  for (let word = 0; word < UUID_WORDS; word += 1) {
    let number = 0;
    for (let half = 0; half < 2; half += 1) {
      const start = HALVES[2 * word + half] ?? 0;
      for (let digit = start; digit < start + DIGITS_PER_HALF_WORD; digit += 1) {
        const value = VALUES[text.charCodeAt(digit)] ?? -1;
        all |= value;
        number = (number << 4) | value;
      }
    }
    into[word] = number;
  }
  return all >= 0;
}
