import type { Quota } from '../decision.js';
import type { Answer } from './exchange.js';

/** An item of a list of RFC 9651: a text and its parameters, such as `"hour";r=12;t=60`. */
const ITEM =
  /"((?:[^"\\]|\\.)*)"((?:; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)/g;
const PARAMETER = /; *([a-z*][a-z0-9_.*-]*)(?:=("(?:[^"\\]|\\.)*"|[^\s",;]*))?/g;

/** The parameters by their names. Each value is as the header has it: a text has quotation marks. */
type Parameters = ReadonlyMap<string, string>;

/** Reads the texts in a list of RFC 9651, each with its parameters. Ignores all other items. */
export function structuredItems(header: string): (readonly [text: string, Parameters])[] {
  return [...header.matchAll(ITEM)].map(([, text = '', parameters = '']) => [
    text.replaceAll(/\\(.)/g, '$1'),
    new Map([...parameters.matchAll(PARAMETER)].map(([, name = '', value = '']) => [name, value])),
  ]);
}

export function wholeNumber(text: unknown): number | undefined {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * The quota in the headers `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11.
 * @returns undefined if the answer has none
 */
export function quotaOf({ headers }: Pick<Answer, 'headers'>): readonly Quota[] | undefined {
  const left = new Map(itemsOf(headers.ratelimit));
  const quota = itemsOf(headers['ratelimit-policy']).flatMap(([name, policy]): Quota[] => {
    const [limit, windowSeconds] = [wholeNumber(policy.get('q')), wholeNumber(policy.get('w'))];
    const remaining = wholeNumber(left.get(name)?.get('r'));
    const resetSeconds = wholeNumber(left.get(name)?.get('t'));
    if (limit === undefined || remaining === undefined || resetSeconds === undefined) return [];
    const one = { name, limit, remaining, resetSeconds };
    return [windowSeconds === undefined ? one : { ...one, windowSeconds }];
  });
  return quota.length > 0 ? quota : undefined;
}

/** The headers that `quotaOf` reads. */
export function quotaHeaders(quota: readonly Quota[]): Readonly<Record<string, string>> {
  const policies = quota.map(({ name, limit, windowSeconds }) => {
    const window = windowSeconds === undefined ? '' : `;w=${windowSeconds}`;
    return `${quoted(name)};q=${limit}${window}`;
  });
  const left = quota.map(
    ({ name, remaining, resetSeconds }) => `${quoted(name)};r=${remaining};t=${resetSeconds}`,
  );
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: left.join(', ') };
}

function itemsOf(header: unknown): (readonly [name: string, Parameters])[] {
  return typeof header === 'string' ? structuredItems(header) : [];
}

function quoted(name: string): string {
  return `"${name.replaceAll(/["\\]/g, '\\$&')}"`;
}
