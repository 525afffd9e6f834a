import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';

import { BOUNDS } from '../limiter/bounds.js';
import type { Entry } from './messages.js';

/** Precedes the digest of a key that is cut. No other key contains it, since every `%` of a descriptor is encoded. */
const CUT_MARK = '%~';

/** The limiter key of a descriptor. */
export type KeyOf = (domain: string, entries: readonly Entry[]) => string;

/**
 * Makes keys by a template with `{domain}`, `{entries}` and `{values}`. An entry is `key=value`, and entries are
 * separated by commas. Characters that could give two descriptors the same key are percent-encoded: `%` and `,`, and in
 * a domain and the key of an entry also `=` and `:`. A key that would be too long is cut and ends in the digest of the
 * whole, so that a long path can't bypass a limit.
 */
export function keyTemplate(template: string): KeyOf {
  // Texts are at even indexes, and the names of parts at odd ones.
  const pieces = template
    .split(/\{(\w+)\}/)
    .map((piece, i) => (i % 2 === 0 ? piece : PARTS[piece]));
  return (domain, entries) => {
    let key = '';
    for (const piece of pieces) {
      if (piece !== undefined) key += typeof piece === 'string' ? piece : piece(domain, entries);
    }
    return withinBounds(key);
  };
}

/** What a template may name. */
const PARTS: Readonly<Record<string, KeyOf>> = {
  domain: (domain) => encodedName(domain),
  entries: (_, entries) =>
    joined(entries, ({ key, value }) => `${encodedName(key)}=${encoded(value)}`),
  values: (_, entries) => joined(entries, ({ value }) => encoded(value)),
};

function joined(entries: readonly Entry[], textOf: (entry: Entry) => string): string {
  const [first] = entries;
  // Most descriptors have one entry.
  return entries.length === 1 && first ? textOf(first) : entries.map(textOf).join();
}

/**
 * Searches the text once for each character. A replacement function for each match would take a hundred times as long
 * for some texts.
 */
export function encoded(text: string): string {
  return text.replaceAll('%', '%25').replaceAll(',', '%2C');
}

export function encodedName(text: string): string {
  return encoded(text).replaceAll('=', '%3D').replaceAll(':', '%3A');
}

function withinBounds(key: string): string {
  const { max } = BOUNDS.keyBytes;
  if (Buffer.byteLength(key) <= max) return key;
  const end = CUT_MARK + createHash('sha256').update(key).digest('base64url');
  // Drops a character that the cut goes through.
  const start = new StringDecoder('utf8').write(Buffer.from(key).subarray(0, max - end.length));
  return start + end;
}
