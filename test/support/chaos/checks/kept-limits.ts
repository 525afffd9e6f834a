import type { Evidence } from './evidence.js';

/**
 * So long a key may keep limits that a replica with old rules gave it after others had loaded newer ones: see
 * docs/rules.md.
 */
const KEPT_MILLIS = 60_000;

/**
 * The maxima that a key may have kept like that at any time of a span.
 * @param name of a further limit whose maxima they are; undefined: those of the key
 */
export function keptMaxima(
  { account, maxima }: Evidence,
  key: string,
  from: number,
  to: number,
  name?: string,
): number[] {
  const ofKey = account.limits.filter((limits) => limits.key === key);
  return ofKey.flatMap(({ at, maximum, further }, i) => {
    const until = Math.min(ofKey[i + 1]?.at ?? Infinity, at + KEPT_MILLIS);
    const limit =
      name === undefined ? maximum : further.find((each) => each.name === name)?.maximum;
    const isKept = maxima.isChangingAt(at) && at <= to && until >= from;
    return isKept && limit !== undefined ? [limit] : [];
  });
}
