import type { Random } from '../chaos/random.js';

/** Bytes with a meaning for one of the parsers. */
const TELLING = [
  '\r\n', '\n', '\r', '\0', ' ', '\t', ':', '/', '//', '..', '?', '#', '&', '=', '%', '%00', '%zz',
  '%ff', '\\', '[', ']', '{', '}', '\x7f', '\x80', '\xa0', '\xff', '-1', '0', '99999999999999999999',
  'HTTP/1.0', 'Transfer-Encoding: chunked\r\n', 'Content-Length: 5\r\n', 'Expect: 100-continue\r\n',
  'Expect: x\r\n', 'Connection: close\r\n', 'canWait=true', 'http://[', 'CONNECT ', '\r\n\r\n',
]; // prettier-ignore

type Mutation = (bytes: string, random: Random) => string;

const MUTATIONS: readonly Mutation[] = [
  function flipBit(bytes, random) {
    const at = random.whole(0, bytes.length - 1);
    const flipped = bytes.charCodeAt(at) ^ (1 << random.whole(0, 7));
    return bytes.slice(0, at) + String.fromCharCode(flipped) + bytes.slice(at + 1);
  },
  function insert(bytes, random) {
    const at = random.whole(0, bytes.length);
    const inserted = random.chance(0.7)
      ? random.pick(TELLING)
      : String.fromCharCode(random.whole(0, 255)).repeat(random.pick([1, 2, 5000]));
    return bytes.slice(0, at) + inserted + bytes.slice(at);
  },
  function remove(bytes, random) {
    const [start, end] = range(bytes, random);
    return bytes.slice(0, start) + bytes.slice(end);
  },
  function duplicate(bytes, random) {
    const [start, end] = range(bytes, random);
    return bytes.slice(0, end) + bytes.slice(start);
  },
  function truncate(bytes, random) {
    return bytes.slice(0, random.whole(1, bytes.length));
  },
  function duplicateLine(bytes, random) {
    const lines = bytes.split('\r\n');
    lines.splice(random.whole(0, lines.length), 0, random.pick(lines));
    return lines.join('\r\n');
  },
];

function range(bytes: string, random: Random): [start: number, end: number] {
  const start = random.whole(0, bytes.length - 1);
  return [start, start + random.whole(1, random.pick([1, 4, 40]))];
}

/** The bytes with some changes, which may have no effect. */
export function mutate(bytes: string, random: Random): string {
  let mutated = bytes;
  for (let left = random.pick([1, 1, 2, 3, 8]); left > 0 && mutated !== ''; left -= 1) {
    mutated = random.pick(MUTATIONS)(mutated, random);
  }
  return mutated;
}
