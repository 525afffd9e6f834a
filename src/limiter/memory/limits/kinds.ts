import type { AlgorithmName } from '../../kinds/kinds.js';
import { calendarOf, type Limit } from '../../limits.js';
import { CalendarWindow } from './calendar-window.js';
import type { CountedLimit, KeyOfLimit } from './counted-limit.js';
import { FixedWindow } from './fixed-window.js';
import { SlidingWindow } from './sliding-window.js';
import { TokenBucket } from './token-bucket.js';
import { Window } from './window.js';

/** Creates the windows, or periods, of a limit, of which one holds `now`. */
export function createWindow(now: number, limit: Limit): Window {
  const calendar = calendarOf(limit);
  const { windowMillis } = limit;
  return calendar ? new CalendarWindow(now, calendar, windowMillis) : new Window(now, windowMillis);
}

type LimitClass = new (limit: Limit, window: Window, key: KeyOfLimit, now: number) => CountedLimit;

const KINDS: Readonly<Record<AlgorithmName, LimitClass>> = {
  fixed_window: FixedWindow,
  sliding_window: SlidingWindow,
  token_bucket: TokenBucket,
};

/** Creates the limit of its kind, with nothing approved. `kinds.begin` in `lua/limits/kinds.lua` does the same. */
export function createLimit(
  limit: Limit,
  window: Window,
  key: KeyOfLimit,
  now: number,
): CountedLimit {
  return new KINDS[limit.algorithm.name](limit, window, key, now);
}

/**
 * Returns the limits of other rules. One that there was before keeps what was approved in its window; where the kind is another, its
 * sum goes on to count.
 */
export function takeRules(
  before: readonly CountedLimit[],
  rules: readonly Limit[],
  key: KeyOfLimit,
  now: number,
): CountedLimit[] {
  const limits = rules.map((rule) => {
    const kept = before.find((limit) => limit.continuesAs(rule));
    kept?.change(now, rule);
    if (kept) return kept;
    const limit = createLimit(rule, createWindow(now, rule), key, now);
    limit.carry(before.find((other) => other.countsAs(rule))?.sum ?? 0);
    return limit;
  });
  for (const limit of before) if (!limits.includes(limit)) limit.clear();
  return limits;
}
