import { randomUUID } from 'node:crypto';

import { FIXED_WINDOW, type Limit, ownLimit } from '../../../../src/limiter/limits.js';
import { Approvals } from '../../../../src/limiter/memory/approvals.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';

const limitOf = (name: string): Limit => ({
  name,
  windowMillis: 1000,
  maximum: 100,
  algorithm: FIXED_WINDOW,
  counts: 'hits',
  keepsReleased: false,
});

test('a correction for which there is too little memory changes no limit', () => {
  /** Fills three tables of ids, and corrects one with this much memory. */
  const correctWith = (bytes: number): { result: unknown; used: number[] } => {
    const approvals = new Approvals(
      0,
      [ownLimit(1000, 100), limitOf('a'), limitOf('b')],
      { maxIdsPerKey: 100, maxHoldsPerKey: 1 },
      new MemoryBudget(bytes),
    );
    const id = randomUUID();
    expect(approvals.add(0, id, {})).toBe(true);
    const result = approvals.amend(0, id, { hits: 7 });
    return { result, used: approvals.limits.map(({ used }) => used) };
  };
  // A table has 4 places of 16 bytes, and of 20 with hits. Both exist for a moment.
  expect(correctWith(3 * 64)).toEqual({ result: 'store_full', used: [1, 1, 1] });
  expect(correctWith(3 * 64 + 80)).toEqual({ result: 'store_full', used: [1, 1, 1] });
  expect(correctWith(3 * 64 + 96)).toEqual({ result: 'store_full', used: [1, 1, 1] });
  expect(correctWith(3 * 64 + 112)).toEqual({ result: {}, used: [7, 7, 7] });
});
