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

const BYTE_VALUES = 256;
const BYTES_PER_WORD = 4;
/** A random number for each value of each byte of a UUID: the seed of this process. */
const RANDOM = randomFillSync(new Uint32Array(UUID_WORDS * BYTES_PER_WORD * BYTE_VALUES));

/**
 * Replaces the numbers of a UUID by others. The second one is a hash of all. Different UUIDs get different numbers.
 *
 * Callers choose ids, so the hash has a random seed and takes all numbers: the ids of UUIDv7 of one minute have few first
 * numbers. These are two rounds of a Feistel network with tabulation hashing, by which linear probing takes few steps
 * whatever the ids are (Pătraşcu and Thorup, 2012).
 */
export function scramble(words: Uint32Array): void {
  const second = words[1] ?? 0;
  const rest = hashOf(second, 0) ^ hashOf(words[2] ?? 0, 1) ^ hashOf(words[3] ?? 0, 2);
  const first = (words[0] ?? 0) ^ rest;
  words[0] = first;
  words[1] = second ^ hashOf(first, 3);
}

/** @param place which of the random numbers it takes: another place has others */
function hashOf(number: number, place: number): number {
  const row = place * BYTES_PER_WORD * BYTE_VALUES;
  return (
    (RANDOM[row + (number & 0xff)] ?? 0) ^
    (RANDOM[row + BYTE_VALUES + ((number >>> 8) & 0xff)] ?? 0) ^
    (RANDOM[row + 2 * BYTE_VALUES + ((number >>> 16) & 0xff)] ?? 0) ^
    (RANDOM[row + 3 * BYTE_VALUES + (number >>> 24)] ?? 0)
  );
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
