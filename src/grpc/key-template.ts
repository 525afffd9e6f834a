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
  return (domain, entries) => {
    const parts: Readonly<Record<string, () => string>> = {
      domain: () => encodedName(domain),
      entries: () =>
        entries.map(({ key, value }) => `${encodedName(key)}=${encoded(value)}`).join(),
      values: () => entries.map(({ value }) => encoded(value)).join(),
    };
    const key = template.replace(/\{(\w+)\}/g, (_, part: string) => parts[part]?.() ?? '');
    return withinBounds(key);
  };
}

/**
 * Searches the text once for each character. A replacement function for each match would take a hundred times as long
 * for some texts.
 */
function encoded(text: string): string {
  return text.replaceAll('%', '%25').replaceAll(',', '%2C');
}

function encodedName(text: string): string {
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
