import { UnavailableError } from '../../limiter/errors.js';
import type { DeniedKey } from '../deciding/recent-denials.js';
import { readReport, type ReplicaReport, writeReport } from './replica-report.js';

/** All readers within this time share what the other replicas have reported. */
const SHARED_MILLIS = 500;

/** The reports of the other replicas, as texts. */
export interface Reports {
  /** @throws UnavailableError if they can't be read */
  read(): Promise<readonly string[]>;
}

/** All replicas, and the keys that they deny. */
export interface FleetView {
  /** This replica is the first. */
  readonly replicas: readonly Omit<ReplicaReport, 'denied'>[];
  readonly denied: readonly DeniedKey[];
}

/** What the replicas do, whichever of them is asked. While nobody looks, none of them reports. */
export class Fleet {
  readonly #others: Reports | undefined;
  #read: Promise<ReplicaReport[]> | undefined;
  #readAt = -Infinity;

  /**
   * @param own the report of this replica
   * @param open joins the reports of all replicas; undefined if there is no other replica
   * @param now milliseconds of a clock that never goes back
   */
  constructor(
    private readonly own: () => Promise<ReplicaReport>,
    open?: (report: () => Promise<string>) => Reports,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#others = open?.(async () => writeReport(await own()));
  }

  async look(): Promise<FleetView> {
    if (!this.#read || this.now() - this.#readAt > SHARED_MILLIS) {
      this.#readAt = this.now();
      this.#read = this.#readOthers();
    }
    const others = await this.#read;
    const reports = [await this.own(), ...others];
    return {
      replicas: reports.map(({ replica, uptimeMillis, decisions, waiting, rules }) => ({
        ...{ replica, uptimeMillis, decisions, waiting, rules },
      })),
      denied: together(reports.flatMap(({ denied }) => denied)),
    };
  }

  async #readOthers(): Promise<ReplicaReport[]> {
    try {
      const texts = (await this.#others?.read()) ?? [];
      return texts.flatMap((text) => readReport(text) ?? []);
    } catch (error) {
      // The page says that the store is down.
      if (error instanceof UnavailableError) return [];
      throw error;
    }
  }
}

/** Puts the runs of each key together, which several replicas have denied. */
function together(denied: readonly DeniedKey[]): DeniedKey[] {
  const byKey = new Map<string, DeniedKey>();
  for (const one of denied) {
    const before = byKey.get(one.key);
    byKey.set(one.key, before ? sumOf(before, one) : one);
  }
  return [...byKey.values()];
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
