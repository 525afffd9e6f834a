import type { Random } from '../chaos/random.js';

const PIECES = [
  'a', 'Z', '0', '/', '//', '.', '..', '%', '%25', '%2F', '{', '}', '{}', '?', '#', '&', '=', '+', ' ',
  '\0', '\n', '\r\n', '\t', '\x7f', '\x85', '\xa0', 'é', '日本', '🚰', '\ufeff', '\u2028', '\\', '"',
  "'", '<b>', '[', ']', '*', ':requests', ':queue', ';v=1', '@', '__proto__', 'canWait=true',
]; // prettier-ignore

/** Characters that need no encoding in the path of a URL, or that the service accepts without it. */
const BARE = /^[\w.~!$&'()*+,;=:@"<>[\]^`{|}-]$/;

const BADLY_ENCODED = [
  '%', '%2', '%zz', '%ff', '%c3', '%c3%28', '%ed%a0%80', '%c0%80', '%f5%80%80%80', '%u0041', '%%',
]; // prettier-ignore

/** A key of awkward characters, which `mark` makes unique. */
export function awkwardKey(mark: string, random: Random): string {
  let key = mark;
  for (let pieces = random.whole(0, 4); pieces > 0; pieces -= 1) {
    key = random.chance(0.5) ? key + random.pick(PIECES) : random.pick(PIECES) + key;
  }
  return random.chance(0.02) ? key + 'x'.repeat(512 - Buffer.byteLength(key)) : key;
}

/** A key in one of its possible encodings in a path. */
export function encodeKey(key: string, random: Random): string {
  switch (random.pick(['usual', 'all', 'least', 'some'])) {
    case 'usual':
      return encodeURIComponent(key);
    case 'all':
      return Array.from(key, (character) => escaped(character, random)).join('');
    case 'least':
      return Array.from(key, (c) => (BARE.test(c) ? c : escaped(c, random))).join('');
    default:
      return Array.from(key, (c) =>
        BARE.test(c) && random.chance(0.5) ? c : escaped(c, random),
      ).join('');
  }
}

/** A mark with an invalid encoding after it. */
export function badlyEncoded(mark: string, random: Random): string {
  return mark + random.pick(BADLY_ENCODED);
}

function escaped(character: string, random: Random): string {
  return Array.from(Buffer.from(character), (byte) => {
    const hex = byte.toString(16).padStart(2, '0');
    return `%${random.chance(0.5) ? hex : hex.toUpperCase()}`;
  }).join('');
}
