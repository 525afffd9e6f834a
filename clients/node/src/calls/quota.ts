import type { Quota } from '../decision.js';
import type { Answer } from './exchange.js';
import { type Parameters, structuredItems, wholeNumber } from './structured-items.js';

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
