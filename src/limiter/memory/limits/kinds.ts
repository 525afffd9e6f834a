import { calendarOf, type Limit } from '../../limits.js';
import type { MemoryBudget } from '../memory-budget.js';
import { CalendarWindow } from './calendar-window.js';
import type { CountedLimit, WithHolds } from './counted-limit.js';
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

/** Creates the limit of its kind, with nothing approved. `kinds.begin` in `lua/limits/kinds.lua` does the same. */
export function createLimit(
  now: number,
  limit: Limit,
  window: Window,
  key: WithHolds,
  maxIds: number,
  budget: MemoryBudget,
): CountedLimit {
  const { algorithm } = limit;
  switch (algorithm.name) {
    case 'fixed_window':
      return new FixedWindow(limit, window, key, maxIds, budget);
    case 'sliding_window':
      return new SlidingWindow(now, { ...limit, algorithm }, window, key, maxIds, budget);
    case 'token_bucket':
      return new TokenBucket(now, { ...limit, algorithm }, window, key, maxIds, budget);
  }
}
