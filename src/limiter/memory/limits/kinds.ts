import type { Limit } from '../../limits.js';
import type { MemoryBudget } from '../memory-budget.js';
import type { CountedLimit } from './counted-limit.js';
import { FixedWindow, type WithHolds } from './fixed-window.js';
import type { Window } from './window.js';

/** Creates the limit of its kind, with nothing approved. `kinds.of` in `lua/limits/kinds.lua` does the same. */
export function createLimit(
  limit: Limit,
  window: Window,
  key: WithHolds,
  maxIds: number,
  budget: MemoryBudget,
): CountedLimit {
  return new FixedWindow(limit, window, key, maxIds, budget);
}
