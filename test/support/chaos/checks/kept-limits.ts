import { lossesIn, overlaps } from '../faults/fault.js';
import type { Evidence } from './evidence.js';

/**
 * So long a key may keep limits that a replica with old rules gave it after others had loaded newer ones: see
 * docs/rules.md.
 */
const KEPT_MILLIS = 60_000;

/**
 * The maxima of its own limit that a key may have kept like that at any time of a span. A server that was silent runs the
 * calls that came to it meanwhile, from replicas that had old rules then. What it forgets may be newer limits.
 */
export function keptMaxima(
  { account, limits: declared, faults }: Evidence,
  key: string,
  from: number,
  to: number,
): number[] {
  const ofKey = account.limits.filter((limits) => limits.key === key);
  return ofKey.flatMap(({ at, limits: [own] }) => {
    // Most limits are of other times. Their faults need not be looked at.
    if (at > to || at + KEPT_MILLIS < from) return [];
    const sure = ofKey.filter(
      (other) => other.at > at && lossesIn(faults, other.at, other.at).length === 0,
    );
    const until = Math.min(at + KEPT_MILLIS, ...sure.map((later) => later.at));
    if (until < from) return [];
    const silences = faults.filter((fault) => fault.silencesRedis && overlaps(fault, at, at));
    const sentFrom = Math.min(at, ...silences.map(({ beganAt }) => beganAt));
    return declared.isChangingIn(sentFrom, at) ? [own.maximum] : [];
  });
}
