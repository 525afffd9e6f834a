import type { Limit } from '../../limits.js';
import type { MemoryBudget } from '../memory-budget.js';
import type { CountedLimit, WithHolds } from './counted-limit.js';
import { FixedWindow } from './fixed-window.js';
import { SlidingWindow } from './sliding-window.js';
import { TokenBucket } from './token-bucket.js';
import type { Window } from './window.js';

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
      return new TokenBucket(now, { ...limit, algorithm }, window, maxIds, budget);
  }
}
