import { parse, unescape } from 'node:querystring';

import type { Query } from './parameters.js';

/** By default the parser ignores parameters beyond a limit. The length of the URL bounds them already. */
const OPTIONS = { maxKeys: 0, decodeURIComponent: decode };
/**
 * In place of a text that is not UTF-8: half of a surrogate pair, which no parameter takes. Node would decode different
 * bytes to the same replacement characters, so that two groups with names in Latin-1 would become one.
 */
const NOT_UTF8 = '\ud800';
const REPLACEMENT = '\ufffd';

/** Parses the part of a URL after the `?`. */
export function parseQuery(query: string): Query {
  return parse(query, '&', '=', OPTIONS);
}

/** A `%` that encodes nothing stands for itself. */
function decode(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    const decoded = unescape(text);
    return decoded.includes(REPLACEMENT) ? NOT_UTF8 : decoded;
  }
}
