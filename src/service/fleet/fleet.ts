import { z } from 'zod';

import { systemClock } from '../../common/clock.js';
import { parsedMessage } from '../../common/schemas.js';
import { UnavailableError } from '../../limiter/errors.js';
import { type DeniedKey, deniedKey } from '../deciding/recent-denials.js';
import { historyOf, type KeyHistory, STEP_MILLIS, sumOf } from './key-history.js';
import { type Activity, activityTogether, MOST_SPANS } from './rates.js';
import { type ReadPages, SharedHistories } from './shared-histories.js';
import type { TotalActivity } from './total-rates.js';
import { type CountedKeys, MOST_REPORTED, MOST_WATCHED } from './counted-keys.js';

/** All readers within this time share what the other replicas have reported. */
const SHARED_MILLIS = 500;
/** How long the other replicas are told that somebody has looked at a key. A page that is open asks more often. */
const LOOKED_AT_MILLIS = 20_000;

/** What this replica tells the others. */
export interface OwnReports extends Pick<CountedKeys, 'watch' | 'share'> {
  readonly report: () => Promise<string>;
}

/** The report of another replica, as a text. */
export interface OtherReport {
  readonly text: string;
  /** How long ago it came. */
  readonly ageMillis: number;
}

/** The replicas that share a store. */
export interface OtherReplicas {
  /**
   * Asks all replicas to report, and to share what they have counted of these keys, and reads the reports of the others.
   * @throws UnavailableError if they can't be read
   */
  read(keys: readonly string[]): Promise<readonly OtherReport[]>;
  readonly readPages: ReadPages;
}

/** All replicas, and the keys that they deny. */
export interface FleetView extends Omit<Others, 'reports'> {
  /** This replica is the first. In an outage of the store, the others are as they have reported last. */
  readonly replicas: readonly (Omit<ReplicaReport, 'denied' | 'activity'> & {
    /** How long ago it reported. 0 for this replica. */
    readonly reportedMillis: number;
    /** Its decisions a second. Undefined if it has not reported them lately. */
    readonly perSecond: number | undefined;
  })[];
  readonly denied: readonly DeniedKey[];
  /** What the replicas decide together that have reported lately. Undefined if none has. */
  readonly total: TotalActivity | undefined;
  /** The same by key, of the busiest keys of each. */
  readonly byKey: ReadonlyMap<string, KeyRates>;
}

/** What the replicas decide about a key. */
export interface KeyRates extends Activity {
  /** Whether each approval of the last minutes had a hold, of all replicas. Undefined if there was none. */
  readonly isHeldOnly?: boolean | undefined;
}

interface FleetParts {
  readonly report: () => Promise<ReplicaReport>;
  readonly countedKeys: CountedKeys;
  /** Joins the reports of all replicas. Undefined if there is no other replica. */
  readonly open?: ((own: OwnReports) => OtherReplicas) | undefined;
}

interface Others {
  readonly reports: readonly { readonly report: ReplicaReport; readonly at: number }[];
  /** When they were read last, in milliseconds since 1970. Undefined: never. */
  readonly readAt: number | undefined;
  /** Whether the reports of the others could be read. */
  readonly isCurrent: boolean;
}

interface SharedRead {
  readonly at: number;
  /** Those of its question. */
  readonly keys: readonly string[];
  readonly others: Promise<Others>;
}

/** What the replicas do, whichever of them is asked. While nobody looks, none of them reports. */
export class Fleet {
  readonly #others: OtherReplicas | undefined;
  readonly #histories: SharedHistories | undefined;
  /** The keys that somebody has looked at here, with the time of the last look. */
  readonly #lookedAt = new Map<string, number>();
  #read: SharedRead | undefined;
  /** What is read after that, for all who wait for it. */
  #next: Promise<Others> | undefined;
  /** What was read last. */
  #known: Others = { reports: [], readAt: undefined, isCurrent: true };

  constructor(private readonly parts: FleetParts) {
    const { report, countedKeys, open } = parts;
    const others = open?.({
      report: async () => writeReport(await report()),
      watch: (key) => countedKeys.watch(key),
      share: (key, write) => countedKeys.share(key, write),
    });
    this.#others = others;
    if (others) {
      this.#histories = new SharedHistories(
        (key, minute) => others.readPages(key, minute),
        systemClock,
      );
    }
  }

  /** @param key that somebody looks at, whose decisions all replicas count from now on */
  async look(key?: string): Promise<FleetView> {
    if (key !== undefined) {
      this.parts.countedKeys.watch(key);
      this.#lookedAt.delete(key);
      this.#lookedAt.set(key, systemClock.now());
    }
    const others = await this.#readShared(key);
    const now = systemClock.now();
    const reports = [{ report: await this.parts.report(), at: now }, ...others.reports];
    return {
      replicas: reports.map(({ report, at }) => {
        const { replica, uptimeMillis, decisions, waiting, rules, activity } = report;
        const perSecond = now - at > LATE_MILLIS ? undefined : decisionsOf(activity?.total);
        const reportedMillis = now - at;
        return { replica, uptimeMillis, decisions, waiting, rules, reportedMillis, perSecond };
      }),
      denied: deniedTogether(reports.map(({ report, at }) => [report.denied, now - at])),
      ...ratesTogether(
        reports.flatMap(({ report: { activity }, at }) =>
          activity && now - at <= LATE_MILLIS ? [activity] : [],
        ),
      ),
      isCurrent: others.isCurrent,
      readAt: others.readAt,
    };
  }

  /**
   * What all replicas have decided about a key since somebody looks at it.
   * @param replicas those that have not ended
   */
  async historyOf(key: string, { replicas }: Pick<FleetView, 'replicas'>): Promise<KeyHistory> {
    if (this.#histories) {
      return this.#histories.look(key, new Set(replicas.map(({ replica }) => replica)));
    }
    const steps = this.parts.countedKeys.stepsOf(key);
    const ended = Math.floor(systemClock.now() / STEP_MILLIS) - 1;
    return historyOf(sumOf(steps), steps.at(-1)?.number ?? ended);
  }

  #readShared(key: string | undefined): Promise<Others> {
    const now = systemClock.now();
    const isShared = (read: SharedRead): boolean =>
      now - read.at <= SHARED_MILLIS && (key === undefined || read.keys.includes(key));
    if (this.#read && isShared(this.#read)) return this.#read.others;
    // One question at a time, so that many who look at other keys share the next one.
    this.#next ??= this.#readNext();
    return this.#next;
  }

  async #readNext(): Promise<Others> {
    await this.#read?.others.catch(() => undefined);
    this.#next = undefined;
    const now = systemClock.now();
    const keys = this.#lookedAtLately(now);
    this.#read = { at: now, keys, others: this.#readOthers(keys) };
    return this.#read.others;
  }

  async #readOthers(keys: readonly string[]): Promise<Others> {
    try {
      const read = (await this.#others?.read(keys)) ?? [];
      const now = systemClock.now();
      const reports = read.flatMap(({ text, ageMillis }) => {
        const report = readReport(text);
        return report ? [{ report, at: now - ageMillis }] : [];
      });
      this.#known = { reports, readAt: now, isCurrent: true };
      return this.#known;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      // It is not shared: the store may be back at the next look.
      this.#read = undefined;
      return { ...this.#known, isCurrent: false };
    }
  }

  #lookedAtLately(now: number): string[] {
    for (const [key, at] of this.#lookedAt) {
      const isOne = now - at <= LOOKED_AT_MILLIS && this.#lookedAt.size <= MOST_WATCHED;
      if (!isOne) this.#lookedAt.delete(key);
    }
    return [...this.#lookedAt.keys()];
  }
}

/** What an older report says of denials is not shown. The store is down then, so that nobody reports. */
const OLDEST_MILLIS = 60_000;

/**
 * Puts the runs of each key together, which several replicas have denied.
 * @param reports the denials of each, and how long ago it reported them
 */
function deniedTogether(
  reports: readonly (readonly [denied: readonly DeniedKey[], ageMillis: number])[],
): DeniedKey[] {
  const byKey = new Map<string, DeniedKey>();
  for (const [denied, ageMillis] of reports) {
    if (ageMillis > OLDEST_MILLIS) continue;
    for (const reported of denied) {
      const one = {
        ...reported,
        sinceMillis: reported.sinceMillis + ageMillis,
        lastMillis: reported.lastMillis + ageMillis,
      };
      const before = byKey.get(one.key);
      byKey.set(one.key, before ? added(before, one) : one);
    }
  }
  return [...byKey.values()];
}

function added(a: DeniedKey, b: DeniedKey): DeniedKey {
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

/** The rates of an older report are not shown. Without an outage, a replica with such a report has ended. */
const LATE_MILLIS = 10_000;

/** @param activities the first is of this replica, unless it has just started */
function ratesTogether(activities: readonly NonNullable<ReplicaReport['activity']>[]) {
  const [own] = activities;
  const byKey = new Map<string, KeyRates>();
  if (!own) return { total: undefined, byKey };
  const parts = new Map<string, KeyPart[]>();
  for (const { span, keys } of activities) {
    for (const key of keys) {
      const others = parts.get(key.key);
      if (others) others.push({ ...key, span });
      else parts.set(key.key, [{ ...key, span }]);
    }
  }
  for (const [key, ofKey] of parts) {
    const known = ofKey.filter((part) => part.isHeldOnly !== undefined);
    const isHeldOnly = known.length === 0 ? undefined : known.every((part) => part.isHeldOnly);
    byKey.set(key, { ...activityTogether(ofKey, own.span), isHeldOnly });
  }
  const totals = activities.map(({ span, total }) => ({ ...total, span }));
  const sum = (outcome: 'shadowed' | 'withdrawn' | 'failed'): number =>
    totals.reduce((all, total) => all + total[outcome], 0);
  const total: TotalActivity = {
    ...activityTogether(totals, own.span),
    ...{ shadowed: sum('shadowed'), withdrawn: sum('withdrawn'), failed: sum('failed') },
  };
  return { total, byKey };
}

type KeyPart = KeyRates & { readonly span: number };

/** Those that were decided: a check that fails is none of them. */
function decisionsOf(total: TotalActivity | undefined): number | undefined {
  return total && total.approved + total.denied + total.shadowed + total.withdrawn;
}

/** The most denied keys of a report, those with the highest rates. */
const MOST_DENIED = 64;

const number = z.number().nonnegative();

const ofActivity = {
  approved: number,
  denied: number,
  series: z.array(number.nullable()).max(MOST_SPANS).readonly(),
};

const activitySchema = z.object({
  span: number,
  total: z.object({ ...ofActivity, shadowed: number, withdrawn: number, failed: number }),
  keys: z
    .array(z.object({ ...ofActivity, key: z.string(), isHeldOnly: z.boolean().optional() }))
    .max(MOST_REPORTED)
    .readonly(),
});

const reportSchema = z.object({
  replica: z.string(),
  /** Since its start. It orders its reports, and gives the time between two of them. */
  uptimeMillis: number,
  /** Since its start. */
  decisions: z.object({
    approved: number,
    denied: number,
    shadowed: number,
    withdrawn: number,
    failed: number,
  }),
  /** Requests that wait there. */
  waiting: number,
  /** The digest of its rules. */
  rules: z.string(),
  /** The keys that it denies now. */
  denied: z.array(deniedKey),
  /** What it decides lately. Undefined just after its start, and for a replica of an older version or with another form of it. */
  activity: activitySchema.optional().catch(undefined),
});

/** What a replica tells the others for the dashboard. */
export type ReplicaReport = Readonly<z.infer<typeof reportSchema>>;

export function writeReport(report: ReplicaReport): string {
  const byRate = report.denied.toSorted((a, b) => b.perSecond - a.perSecond);
  return JSON.stringify({ ...report, denied: byRate.slice(0, MOST_DENIED) });
}

/** @returns undefined for a report that a replica of another version writes in another form */
export function readReport(text: string): ReplicaReport | undefined {
  return parsedMessage(reportSchema, text);
}
