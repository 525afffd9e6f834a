import { randomUUID } from 'node:crypto';

import type { FurtherLimit } from '../../../../src/limiter/further-limits.js';
import { Approvals } from '../../../../src/limiter/memory/approvals.js';
import { MemoryRoom } from '../../../../src/limiter/memory/memory-room.js';

const limitOf = (name: string): FurtherLimit => ({
  name,
  windowMillis: 1000,
  maximum: 100,
  counts: 'hits',
  keepsReleased: false,
});

test('a correction for which there is too little memory changes no limit', () => {
  /** Fills three tables of ids, and corrects one in a room in which so many can be made wider. */
  const correctWith = (bytes: number): { result: unknown; taken: number[] } => {
    const approvals = new Approvals(
      { maxIdsPerKey: 100, maxHoldsPerKey: 1 },
      new MemoryRoom(bytes),
    );
    approvals.takeFurther(0, [limitOf('a'), limitOf('b')]);
    const id = randomUUID();
    expect(approvals.add(0, id, {})).toBe(true);
    const result = approvals.amend(0, id, { hits: 7 });
    return {
      result,
      taken: [approvals.hits, ...approvals.further.map((window) => window.taken(undefined))],
    };
  };
  // A table has 4 places of 16 bytes, and of 20 with hits. Both exist for a moment.
  expect(correctWith(3 * 64)).toEqual({ result: 'store_full', taken: [1, 1, 1] });
  expect(correctWith(3 * 64 + 80)).toEqual({ result: 'store_full', taken: [1, 1, 1] });
  expect(correctWith(3 * 64 + 96)).toEqual({ result: 'store_full', taken: [1, 1, 1] });
  expect(correctWith(3 * 64 + 112)).toEqual({ result: {}, taken: [7, 7, 7] });
});
