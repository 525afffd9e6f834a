import { z } from 'zod';

import { RecentValues } from '../../common/collections.js';
import { DENIAL_REASONS, type DenialReason } from '../../limiter/limiter.js';
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

/** No denials, for any reason. */
export const NO_DENIALS = Object.fromEntries(
  DENIAL_REASONS.map((reason) => [reason, 0]),
) as Readonly<Record<DenialReason, number>>;

const number = z.number().nonnegative();

/** The current run of denials of one key, as replicas report it. */
export const deniedKey = z.object({
  key: z.string(),
  perSecond: number,
  count: number,
  // A replica of an older version knows fewer reasons.
  byReason: z
    .partialRecord(z.enum(DENIAL_REASONS), number)
    .transform((counts): Record<DenialReason, number> => ({ ...NO_DENIALS, ...counts })),
  lastReason: z.enum(DENIAL_REASONS),
  /** The limit that denied last, if the key has several. */
  lastLimit: z.string().optional(),
  /** Whether a shadow rule let the last denial pass. */
  isShadow: z.boolean(),
  /** The last caller that was denied, if there are tokens. */
  caller: z.string().optional(),
  /** How long ago the first and the last denial were. */
  sinceMillis: number,
  lastMillis: number,
});

export type DeniedKey = Readonly<z.infer<typeof deniedKey>>;

interface Run {
  /** What is shown as it is. */
  readonly shown: Omit<z.infer<typeof deniedKey>, 'perSecond' | 'sinceMillis' | 'lastMillis'>;
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
    reason: DenialReason,
    policy: KeyPolicy,
    caller: string | undefined,
    limit?: string,
  ): void {
    const now = this.now();
    let run = this.#runs.get(key);
    if (!run || now - run.last > run.quietMillis) {
      const byReason = { ...NO_DENIALS };
      const shown = { key, count: 0, byReason, lastReason: reason, isShadow: policy.isShadow };
      run = { shown, since: now, last: now, quietMillis: QUIET_MILLIS, level: 0 };
      this.#runs.set(key, run);
    }
    run.level = run.level * Math.exp((run.last - now) * DECAY) + 1;
    const { shown } = run;
    shown.count += 1;
    shown.byReason[reason] += 1;
    shown.lastReason = reason;
    shown.lastLimit = limit;
    shown.isShadow = policy.isShadow;
    shown.caller = caller;
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
    const { shown, since, last } = run;
    if (now - last > run.quietMillis) return undefined;
    const faded = run.level * Math.exp((last - now) * DECAY);
    // The share of its final level that a steady rate would have reached by now.
    const share = 1 - Math.exp(-Math.max(SHORTEST_MILLIS, now - since) * DECAY);
    return {
      ...shown,
      perSecond: (faded * DECAY * 1000) / share,
      sinceMillis: now - since,
      lastMillis: now - last,
    };
  }
}
