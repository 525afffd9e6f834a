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
/** The character codes of both digits of each byte. */
const DIGITS = Array.from({ length: BYTE_VALUES }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0'), 'latin1').readUint16LE(),
);

/** Random numbers for further UUIDs, filled for many at a time. */
const pool = new Uint32Array(64 * UUID_WORDS);
let inPool = 0;
/** Where the text of a UUID is written. Joined from parts it would be copied again, and take twice as long. */
const written = Buffer.from('00000000-0000-4000-8000-000000000000', 'latin1');
/** The UUID that was made last, and its numbers. */
let made: string | undefined;
const ofMade = new Uint32Array(UUID_WORDS);

/**
 * Makes a UUID of version 4 (RFC 9562), as `randomUUID` does in more time. It is nearly always the next that is parsed, which is
 * at once then.
 */
export function newUuid(): string {
  if (inPool === 0) {
    randomFillSync(pool);
    inPool = pool.length;
  }
  inPool -= UUID_WORDS;
  copyNumbers(pool, ofMade, inPool);
  ofMade[1] = ((ofMade[1] ?? 0) & 0xffff0fff) | 0x4000;
  ofMade[2] = ((ofMade[2] ?? 0) & 0x3fffffff) | 0x80000000;
  for (let half = 0; half < HALVES.length; half += 1) {
    const number = ofMade[half >> 1] ?? 0;
    const at = HALVES[half] ?? 0;
    write(at, half % 2 === 0 ? number >>> 24 : number >>> 8);
    write(at + 2, half % 2 === 0 ? number >>> 16 : number);
  }
  made = written.toString('latin1');
  return made;
}

/** Writes the digits of the lowest byte of a number. */
function write(at: number, number: number): void {
  const digits = DIGITS[number & 0xff] ?? 0;
  written[at] = digits & 0xff;
  written[at + 1] = digits >>> 8;
}

/**
 * Parses a UUID in lower case.
 * @returns false for any other text, which leaves `into` undefined
 */
export function parseUuid(text: string, into: Uint32Array): boolean {
  if (text === made) {
    copyNumbers(ofMade, into);
    return true;
  }
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

/**
 * Copies the numbers of a UUID. For so few, `set` takes ten times as long.
 * @param start where they begin in `from`
 * @param at where they are to begin in `to`
 */
export function copyNumbers(from: Uint32Array, to: Uint32Array, start = 0, at = 0): void {
  for (let word = 0; word < UUID_WORDS; word += 1) to[at + word] = from[start + word] ?? 0;
}
