import { lossesIn, overlaps } from '../faults/fault.js';
import { describeEntry } from '../ledger.js';
import { limitOf } from '../limits.js';
import type { Evidence } from './evidence.js';

/**
 * Limits that some replica went by, and no rules gave it then. A primary that stood still, and is none any more, still
 * runs the calls that came to it before.
 */
export function undeclaredLimits(evidence: Evidence): string[] {
  return evidence.account.limits.flatMap(({ key, at, limits, areOther }) => {
    if (!areOther) return [];
    const losses = lossesIn(evidence.faults, at, at);
    const sentFrom = Math.min(at, ...losses.map(({ beganAt }) => beganAt));
    const undeclared = limits.filter(
      (limit) => !evidence.limits.declares(limitOf(key, limit.name), limit, sentFrom, at),
    );
    return undeclared.map(
      (limit) => `${key} was given ${JSON.stringify(limit)} at ${at}, as no rules had it then`,
    );
  });
}

/**
 * Answers by a maximum that no rules gave since they were asked for, and that the key has not kept. What Redis forgets
 * may be a change of it.
 */
export function answersByOtherRules(evidence: Evidence): string[] {
  return evidence.ledger.entries.flatMap((entry) => {
    const { key, maximum, sentAt, endedAt = Infinity } = entry;
    if (maximum === undefined || evidence.limits.allows(key, maximum, sentAt, endedAt)) return [];
    if (lossesIn(evidence.faults, sentAt, endedAt).length > 0) return [];
    if (keptMaxima(evidence, key, sentAt, endedAt).includes(maximum)) return [];
    return [
      `${describeEntry(entry)}, sent at ${sentAt} and answered at ${endedAt}, has a maximum of ` +
        `${maximum}, as no rules had it then`,
    ];
  });
}

/**
 * So long a key may keep limits that a replica with old rules gave it after others had loaded newer ones: see
 * docs/change-rules.md.
 */
const KEPT_MILLIS = 60_000;

/**
 * The maxima of its own limit that a key may have kept like that at any time of a span. A server that was silent runs the
 * calls that came to it meanwhile, from replicas that had old rules then. What it forgets may be newer limits.
 */
function keptMaxima(
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
