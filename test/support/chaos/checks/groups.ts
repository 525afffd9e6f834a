import { lossesIn } from '../faults/fault.js';
import { type Approval, describeEntry } from '../ledger.js';
import { limitOf, TENANT } from '../limits.js';
import type { Evidence } from './evidence.js';

/** Redis's time of a script, and the time that MONITOR shows, differ by less unless the machine stands still in between. */
const SLACK_MILLIS = 5;

interface Taken {
  readonly approval: Approval;
  /** By Redis's clock. */
  readonly at: number;
}

/**
 * Groups that got more than the limit that each has to itself: what clients were told, by group and key, in any span of its
 * length. Approvals that may have been released do not count.
 */
export function overspentByGroups(evidence: Evidence): string[] {
  return [...takenByGroups(evidence).values()].flatMap((all) =>
    all.flatMap(({ approval, at }) => {
      const first = at - TENANT.windowMillis + SLACK_MILLIS;
      const from = first + evidence.standstills.longestWithin(first, at);
      const inSpan = all.filter((other) => other.at > from && other.at <= at);
      const hits = inSpan.reduce((sum, { approval: { hits: of = 1 } }) => sum + of, 0);
      const most = mostOf(evidence, approval, from, at);
      if (hits <= most) return [];
      const of = approval.group ?? '';
      return [`${describeEntry(approval)}, at ${at}: ${hits} hits of ${of}, and not ${most}`];
    }),
  );
}

function takenByGroups({ ledger, account }: Evidence): Map<string, Taken[]> {
  const released = new Set(
    ledger.entries.filter(({ kind }) => kind === 'release').map(({ requestId }) => requestId),
  );
  const byGroup = new Map<string, Taken[]>();
  for (const approval of ledger.approvals) {
    const { key, group, requestId, endedAt } = approval;
    const at = account.approvals.get(requestId)?.findLast((given) => given.at <= endedAt)?.at;
    if (group === undefined || at === undefined || released.has(requestId)) continue;
    const name = `${key} ${group}`;
    byGroup.set(name, [...(byGroup.get(name) ?? []), { approval, at }]);
  }
  return byGroup;
}

/**
 * The most that a group may get in a span by the limits of its key. Infinite if what it got was lost, or some replica may have had
 * other rules: where these have no limit of groups, it does not tell Redis the group of each check.
 */
function mostOf(
  { account, faults, limits: declared }: Evidence,
  { key, group = '' }: Approval,
  from: number,
  to: number,
): number {
  const isKnown = account.wasWatched(from, to) && lossesIn(faults, from, to).length === 0;
  if (!isKnown || declared.isChangingIn(from, to)) return Infinity;
  const ofKey = account.limits
    .filter((limits) => limits.key === key && limits.at <= to)
    .sort((a, b) => a.at - b.at);
  const last = ofKey.findLast(({ at }) => at < from);
  const inForce = ofKey.filter((limits) => limits.at >= from || limits === last);
  const maxima = inForce.map(({ limits }) => {
    const limit = limits.find(({ name }) => name === TENANT.name);
    const isDeclared = limit && declared.declares(limitOf(key, limit.name), limit, from, to);
    return isDeclared ? (limit.perGroup?.maxima.get(group) ?? limit.maximum) : Infinity;
  });
  return last ? Math.max(...maxima) : Infinity;
}
