import type { Quota } from '../decision.js';
import type { Answer } from './exchange.js';

/** An item of a list of RFC 9651: a text, and parameters that are whole numbers. */
const ITEM = /"((?:[^"\\]|\\.)*)"((?:;[a-z]+=\d+)*)/g;
const PARAMETER = /;([a-z]+)=(\d+)/g;

type Item = readonly [name: string, parameters: ReadonlyMap<string, number>];

/**
 * The quota in the headers `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11.
 * @returns undefined if the answer has none
 */
export function quotaOf({ headers }: Pick<Answer, 'headers'>): readonly Quota[] | undefined {
  const left = new Map(itemsOf(headers.ratelimit));
  const quota = itemsOf(headers['ratelimit-policy']).flatMap(([name, policy]): Quota[] => {
    const [limit, windowSeconds] = [policy.get('q'), policy.get('w')];
    const [remaining, resetSeconds] = [left.get(name)?.get('r'), left.get(name)?.get('t')];
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

function itemsOf(header: unknown): Item[] {
  if (typeof header !== 'string') return [];
  return [...header.matchAll(ITEM)].map(([, name = '', parameters = '']) => [
    name.replaceAll(/\\(.)/g, '$1'),
    new Map([...parameters.matchAll(PARAMETER)].map(([, key = '', n]) => [key, Number(n)])),
  ]);
}

function quoted(name: string): string {
  return `"${name.replaceAll(/["\\]/g, '\\$&')}"`;
}
