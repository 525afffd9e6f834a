import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers';

import type { Quota } from '../decision.js';
import { SluiceUnavailableError } from '../errors.js';
import type { ReportedLimits, ReportOptions } from '../options.js';
import { remainingIn, type VendorRemaining } from './vendor-headers.js';

/** The name of a key's own limit. No further limit has it. */
export const OWN_LIMIT = 'default';
/** How often what remains of a limit is reported at most, but for 0. A report also takes no longer. */
const INTERVAL_MILLIS = 1000;
/** How long a limit is not asked again that has rejected a report. Its rule or the version of Sluice may change. */
const REJECTED_MILLIS = 60_000;

interface Reporter {
  reportRemaining(key: string, remaining: number, options: ReportOptions): Promise<void>;
}

interface Sent {
  readonly at: number;
  readonly remaining: number;
  /** When Sluice last rejected a report. */
  rejectedAt: number;
  /** The least that was said since, with its reset as of the end of the second. */
  least?: VendorRemaining | undefined;
}

/** Reports what a vendor says remains to Sluice. */
export class RemainingReports {
  /** The last report of each key and limit, the oldest first. */
  readonly #sent = new Map<string, Sent>();
  /** The group that the reports are about; undefined for limits that all groups share. */
  readonly group: string | undefined;

  /**
   * @param group of the calls
   * @param now monotonic, in ms
   * @param later does some work after these milliseconds, unless the process ends before
   */
  constructor(
    private readonly client: Reporter,
    private readonly limits: ReportedLimits,
    group: string | undefined,
    private readonly now: () => number = () => performance.now(),
    private readonly later: (work: () => void, millis: number) => void = (work, millis) =>
      setTimeout(work, millis).unref(),
  ) {
    this.group = limits.perGroup ? group : undefined;
  }

  /**
   * Reports what an answer says, if that is less than Sluice believes. A report that fails is ignored.
   * @param quota what Sluice believes: of the approval with which the vendor was called
   * @returns for how many milliseconds the key, or the group, has to be paused, since nothing remains of a limit that takes no
   *     reports; 0 for no pause
   */
  async report(
    key: string,
    headers: Pick<Headers, 'get'>,
    quota: readonly Quota[] | undefined,
  ): Promise<number> {
    const pauses = await Promise.all(
      [...this.#leastByLimit(headers)].map(async ([limit, stated]) => {
        const believed = remainingOf(limit, quota);
        const isLess = believed === undefined || stated.remaining < believed;
        return isLess ? this.#reportOne(key, limit, stated) : 0;
      }),
    );
    return Math.max(0, ...pauses);
  }

  /** The least that remains for each limit. Of two, the one that resets later. */
  #leastByLimit(headers: Pick<Headers, 'get'>): ReadonlyMap<string, VendorRemaining> {
    const least = new Map<string, VendorRemaining>();
    for (const stated of remainingIn(headers, Date.now())) {
      const limit = this.limits[stated.unit];
      if (limit === undefined) continue;
      const other = least.get(limit);
      if (other === undefined || bindsMore(stated, other)) least.set(limit, stated);
    }
    return least;
  }

  /** Reports at once, or at the end of the second if the last report was sent in it. 0 does not wait for that. */
  async #reportOne(key: string, limit: string, stated: VendorRemaining): Promise<number> {
    const { remaining, resetMillis } = stated;
    const now = this.now();
    const id = JSON.stringify([key, limit]);
    const last = this.#sent.get(id);
    const pauseMillis = remaining === 0 ? (resetMillis ?? 0) : 0;
    const isRejected = last !== undefined && now - last.rejectedAt < REJECTED_MILLIS;
    const isNews = remaining === 0 && last?.remaining !== 0;
    if (last && !isNews && now - last.at < INTERVAL_MILLIS) {
      if (!isRejected) this.#keep(last, stated, now, [key, limit]);
      return 0;
    }
    if (isRejected && pauseMillis === 0) return 0;

    const sent: Sent = { at: now, remaining, rejectedAt: last?.rejectedAt ?? -Infinity };
    if (last) last.least = undefined;
    this.#sent.delete(id);
    this.#forgetBefore(now - REJECTED_MILLIS);
    this.#sent.set(id, sent);
    if (isRejected) return pauseMillis;
    const further = limit === OWN_LIMIT ? undefined : limit;
    const { group } = this;
    const options = { resetMillis, limit: further, group, timeoutMillis: INTERVAL_MILLIS };
    try {
      await this.client.reportRemaining(key, remaining, options);
      return 0;
    } catch (error) {
      if (error instanceof SluiceUnavailableError) return 0;
      sent.rejectedAt = now;
      return pauseMillis;
    }
  }

  /** Keeps the least of what is said in a second, to report it at the end of the second. */
  #keep(
    last: Sent,
    { resetMillis, ...stated }: VendorRemaining,
    now: number,
    limit: [key: string, limit: string],
  ): void {
    const millis = Math.ceil(last.at + INTERVAL_MILLIS - now);
    // By then the limit has reset.
    if (resetMillis !== undefined && resetMillis <= millis) return;
    const kept =
      resetMillis === undefined ? stated : { ...stated, resetMillis: resetMillis - millis };
    const isFirst = last.least === undefined;
    if (last.least === undefined || bindsMore(kept, last.least)) last.least = kept;
    if (!isFirst) return;
    this.later(() => {
      const { least } = last;
      last.least = undefined;
      if (least) void this.#reportOne(...limit, least);
    }, millis);
  }

  #forgetBefore(time: number): void {
    for (const [id, { at }] of this.#sent) {
      if (at > time) return;
      this.#sent.delete(id);
    }
  }
}

function bindsMore(one: VendorRemaining, other: VendorRemaining): boolean {
  if (one.remaining !== other.remaining) return one.remaining < other.remaining;
  return (one.resetMillis ?? 0) > (other.resetMillis ?? 0);
}

/** What Sluice believes remains of a limit; undefined if the approval does not say. */
function remainingOf(limit: string, quota: readonly Quota[] = []): number | undefined {
  const [own, ...further] = quota;
  const one = limit === OWN_LIMIT ? own : further.find(({ name }) => name === limit);
  return one?.remaining;
}
