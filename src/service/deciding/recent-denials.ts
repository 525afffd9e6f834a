import { RecentValues } from '../../common/recent-values.js';
import type { Decision } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';

/** The most keys that are remembered in each of two generations. */
const KEPT_KEYS = 1000;
/** A run of denials is over after this long without one, or after the longest window of its key, if that is longer. */
const QUIET_MILLIS = 60_000;
/** A denial counts half as much for the rate after this long. */
const HALF_LIFE_MILLIS = 10_000;
const DECAY = Math.LN2 / HALF_LIFE_MILLIS;
/** A rate over less time than this would be mostly chance. */
const SHORTEST_MILLIS = 1000;

type Denial = Extract<Decision, { readonly outcome: 'denied' }>;

/** The current run of denials of one key. */
export interface DeniedKey {
  readonly key: string;
  readonly perSecond: number;
  readonly count: number;
  readonly byReason: Readonly<Record<Denial['reason'], number>>;
  readonly lastReason: Denial['reason'];
  /** The limit that denied last, if the key has several. */
  readonly lastLimit?: string | undefined;
  /** Whether a shadow rule let the last denial pass. */
  readonly isShadow: boolean;
  /** The last caller that was denied, if there are tokens. */
  readonly caller?: string | undefined;
  /** How long ago the first and the last denial were. */
  readonly sinceMillis: number;
  readonly lastMillis: number;
}

/** No denials, for any reason. */
export const NO_DENIALS: DeniedKey['byReason'] = {
  limit_reached: 0,
  queue_full: 0,
  queue_full_of_group: 0,
  turn_too_late: 0,
  wait_expired: 0,
  too_many_hits: 0,
  paused: 0,
};

interface Run {
  readonly key: string;
  count: number;
  readonly byReason: Record<Denial['reason'], number>;
  lastReason: Denial['reason'];
  lastLimit: string | undefined;
  isShadow: boolean;
  caller: string | undefined;
  since: number;
  last: number;
  quietMillis: number;
  /** The number of denials, of which each fades with time. */
  level: number;
}

/**
 * The keys that this replica denies now, with the reason, the start and the rate of the denials. It remembers the keys
 * that were denied last, so that any number of keys takes little memory, and records a denial by one look into a map.
 */
export class RecentDenials {
  readonly #runs = new RecentValues<Run>(KEPT_KEYS);

  /** @param now milliseconds of a clock that never goes back */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * @param caller the name of the caller that was denied, if there are tokens
   * @param limit the name of the limit that denied, if the key has several
   */
  record(
    key: string,
    reason: Denial['reason'],
    policy: KeyPolicy,
    caller: string | undefined,
    limit?: string,
  ): void {
    const now = this.now();
    let run = this.#runs.get(key);
    if (!run || now - run.last > run.quietMillis) {
      run = begin(key, now);
      this.#runs.set(key, run);
    }
    run.level = run.level * Math.exp((run.last - now) * DECAY) + 1;
    run.count += 1;
    run.byReason[reason] += 1;
    run.lastReason = reason;
    run.lastLimit = limit;
    run.isShadow = policy.isShadow;
    run.caller = caller;
    run.last = now;
    run.quietMillis = Math.max(
      QUIET_MILLIS,
      ...policy.limits.map(({ windowMillis }) => windowMillis),
    );
  }

  /** The current runs of all keys, in no order. */
  all(): DeniedKey[] {
    const now = this.now();
    return [...this.#runs.values()].flatMap((run) => this.#seen(run, now) ?? []);
  }

  #seen(run: Run, now: number): DeniedKey | undefined {
    const { key, count, byReason, lastReason, lastLimit, isShadow, caller, since, last } = run;
    if (now - last > run.quietMillis) return undefined;
    const faded = run.level * Math.exp((last - now) * DECAY);
    // The share of its final level that a steady rate would have reached by now.
    const share = 1 - Math.exp(-Math.max(SHORTEST_MILLIS, now - since) * DECAY);
    return {
      key,
      perSecond: (faded * DECAY * 1000) / share,
      count,
      byReason,
      lastReason,
      lastLimit,
      isShadow,
      caller,
      sinceMillis: now - since,
      lastMillis: now - last,
    };
  }
}

function begin(key: string, now: number): Run {
  return {
    key,
    count: 0,
    byReason: { ...NO_DENIALS },
    lastReason: 'limit_reached',
    lastLimit: undefined,
    isShadow: false,
    caller: undefined,
    since: now,
    last: now,
    quietMillis: QUIET_MILLIS,
    level: 0,
  };
}
