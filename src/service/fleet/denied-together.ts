import type { DeniedKey } from '../deciding/recent-denials.js';

/** What an older report says of denials is not shown. The store is down then, so that nobody reports. */
const OLDEST_MILLIS = 60_000;

/**
 * Puts the runs of each key together, which several replicas have denied.
 * @param reports the denials of each, and how long ago it reported them
 */
export function deniedTogether(
  reports: readonly (readonly [denied: readonly DeniedKey[], ageMillis: number])[],
): DeniedKey[] {
  const byKey = new Map<string, DeniedKey>();
  for (const [denied, ageMillis] of reports) {
    if (ageMillis > OLDEST_MILLIS) continue;
    for (const reported of denied) {
      const one = aged(reported, ageMillis);
      const before = byKey.get(one.key);
      byKey.set(one.key, before ? sumOf(before, one) : one);
    }
  }
  return [...byKey.values()];
}

function aged(run: DeniedKey, millis: number): DeniedKey {
  return { ...run, sinceMillis: run.sinceMillis + millis, lastMillis: run.lastMillis + millis };
}

function sumOf(a: DeniedKey, b: DeniedKey): DeniedKey {
  const last = a.lastMillis <= b.lastMillis ? a : b;
  const reasons = Object.keys(a.byReason) as DeniedKey['lastReason'][];
  const byReason = { ...a.byReason };
  for (const reason of reasons) byReason[reason] = a.byReason[reason] + b.byReason[reason];
  return {
    ...last,
    perSecond: a.perSecond + b.perSecond,
    count: a.count + b.count,
    byReason,
    sinceMillis: Math.max(a.sinceMillis, b.sinceMillis),
  };
}
