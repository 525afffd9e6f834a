import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';

import { BOUNDS } from '../limiter/bounds.js';
import type { Entry } from './messages.js';

/** Is before and after what has been cut out of a value. No key has it otherwise, since every `%` of a descriptor is encoded. */
export const CUT_MARK = '%~';
/** Characters of the digest of a key that is cut, in base64url: 128 bits. */
const DIGEST_LENGTH = 22;
const PERCENT = 0x25;

export type KeyOf = (domain: string, entries: readonly Entry[]) => string;

/**
 * Makes keys by a template with `{domain}`, `{entries}` and `{values}`. An entry is `key=value`, and entries are
 * separated by commas. Characters that could give two descriptors the same key are percent-encoded: `%` and `,`, and in
 * a domain and the key of an entry also `=` and `:`.
 *
 * If a key would be too long, its longest values are cut in their middles, all to the same length: rules still match the
 * entries, and the beginning and the end of each value. The first cut has the digest of the whole key, so that no two
 * descriptors have the same one. Only if its names alone are too long is the key cut as a whole.
 */
export function keyTemplate(template: string): KeyOf {
  // Texts are at even indexes, and the names of parts at odd ones.
  const pieces = template
    .split(/\{(\w+)\}/)
    .map((piece, i) => (i % 2 === 0 ? piece : PARTS[piece]));
  const timesOfValues = pieces.filter(
    (piece) => piece === PARTS.entries || piece === PARTS.values,
  ).length;
  const write: KeyWriter = (domain, entries, encodeValue) => {
    let key = '';
    for (const piece of pieces) {
      if (piece === undefined) continue;
      key += typeof piece === 'string' ? piece : piece(domain, entries, encodeValue);
    }
    return key;
  };
  return (domain, entries) => {
    const key = write(domain, entries, encoded);
    const { max } = BOUNDS.keyBytes;
    if (Buffer.byteLength(key) <= max) return key;
    const digest = createHash('sha256').update(key).digest('base64url').slice(0, DIGEST_LENGTH);
    const names = Buffer.byteLength(write(domain, entries, () => ''));
    const room = Math.floor((max - names) / timesOfValues) - DIGEST_LENGTH;
    const cut = withCutValues(entries, digest, room);
    return cut ? write(domain, cut, (value) => value) : cutWhole(key, digest);
  };
}

type KeyWriter = (
  domain: string,
  entries: readonly Entry[],
  encodeValue: (value: string) => string,
) => string;

const PARTS: Readonly<Record<string, KeyWriter>> = {
  domain: (domain) => encodedName(domain),
  entries: (_, entries, encodeValue) =>
    joined(entries, ({ key, value }) => `${encodedName(key)}=${encodeValue(value)}`),
  values: (_, entries, encodeValue) => joined(entries, ({ value }) => encodeValue(value)),
};

function joined(entries: readonly Entry[], textOf: (entry: Entry) => string): string {
  const [first] = entries;
  // Most descriptors have one entry.
  return entries.length === 1 && first ? textOf(first) : entries.map(textOf).join();
}

/** Most texts have none of these. */
const ENCODED = /[%,]/;
const ENCODED_IN_NAMES = /[%,=:]/;

/**
 * Searches the text once for each character. A replacement function for each match would take a hundred times as long
 * for some texts.
 */
export function encoded(text: string): string {
  return ENCODED.test(text) ? text.replaceAll('%', '%25').replaceAll(',', '%2C') : text;
}

export function encodedName(text: string): string {
  if (!ENCODED_IN_NAMES.test(text)) return text;
  return encoded(text).replaceAll('=', '%3D').replaceAll(':', '%3A');
}

/**
 * The entries with encoded values, of which the longest are cut.
 * @param room for all values together, besides the digest
 * @returns undefined if they do not fit in even if they are nothing but marks
 */
function withCutValues(
  entries: readonly Entry[],
  digest: string,
  room: number,
): Entry[] | undefined {
  const parts = entries.map(({ key, value }) => ({ key, bytes: Buffer.from(encoded(value)) }));
  const longest = longestOf(
    parts.map(({ bytes }) => bytes.length),
    room,
  );
  if (longest < 2 * CUT_MARK.length) return undefined;
  let inCut = digest;
  return parts.map(({ key, bytes }) => {
    if (bytes.length <= longest) return { key, value: bytes.toString() };
    const value = cutInMiddle(bytes, longest, inCut);
    inCut = '';
    return { key, value };
  });
}

/** How long a value may be, so that all of them fit in. */
function longestOf(lengths: readonly number[], room: number): number {
  let left = room;
  for (const [i, length] of lengths.toSorted((a, b) => a - b).entries()) {
    const share = Math.floor(left / (lengths.length - i));
    if (length > share) return share;
    left -= length;
  }
  return Infinity;
}

/** Keeps three times as much of the beginning as of the end: most wildcards of rules are at ends. */
function cutInMiddle(value: Buffer, longest: number, digest: string): string {
  const kept = longest - 2 * CUT_MARK.length;
  let start = Math.ceil((kept * 3) / 4);
  let end = value.length - (kept - start);
  while (!isBetweenCharacters(value, start)) start -= 1;
  while (!isBetweenCharacters(value, end)) end += 1;
  const [before, after] = [value.toString('utf8', 0, start), value.toString('utf8', end)];
  return before + CUT_MARK + digest + CUT_MARK + after;
}

/** Whether no character of an encoded text is on both sides, and none that is percent-encoded. */
function isBetweenCharacters(text: Buffer, at: number): boolean {
  const continues = ((text[at] ?? 0) & 0xc0) === 0x80;
  return !continues && text[at - 1] !== PERCENT && text[at - 2] !== PERCENT;
}

function cutWhole(key: string, digest: string): string {
  const end = CUT_MARK + digest;
  // Drops a character that the cut goes through.
  const start = new StringDecoder('utf8').write(
    Buffer.from(key).subarray(0, BOUNDS.keyBytes.max - end.length),
  );
  return start + end;
}
