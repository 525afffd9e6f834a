import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import {
  type BatchedCheck,
  type CheckBatch,
  encodeChecks,
  type KeyAssumption,
} from '../../../../src/redis/scripts/check-codec.js';
import { SCRIPT_CALLER } from '../../../support/script-caller.js';
import { checkBatchOf } from '../../../support/script-harness.js';
import { keyLimits } from '../../../support/limits.js';

const naming = new KeyNaming('p:');
const USUAL = keyLimits({ windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 3 });
const OTHER = keyLimits({ windowMillis: 5000, maxRequests: 7, maxRequestsInQueue: 0 });

const batch = (key: string, checks = 1): CheckBatch =>
  checkBatchOf(
    naming.namesOf(key),
    Array.from({ length: checks }, (_, i) => ({ requestId: `${key} ${i}`, canWait: false })),
  );

/** The argument before the ids of the requests. */
function shapesOf(...batches: CheckBatch[]): unknown {
  const limitsOf = (key: string) => (key.startsWith('other') ? OTHER : USUAL);
  const circumstances = { isSentAgain: false, mayBeFull: false, hasSeveralSlots: false, time: 0 };
  const { args } = encodeChecks({ ...SCRIPT_CALLER, limitsOf }, batches, circumstances);
  return args.at(-1 - batches.reduce((sum, { checks }) => sum + checks.length, 0));
}

test('single plain checks of keys with the same limits need no text', () => {
  expect(shapesOf(batch('a'), batch('b'), batch('c'))).toBe('');
});

test('a key with other limits than the first has them in its text', () => {
  expect(shapesOf(batch('a'), batch('other'), batch('b'))).toBe('1 1=5000:7:0 1');
  expect(shapesOf(batch('other'), batch('another'), batch('b', 2))).toBe('1 1=1000:2:3 2=1000:2:3');
});

test('a check says its lane, and its group if it can wait or others may', () => {
  const lane = { kind: 'lane', name: 'a', headStartMillis: 5 } as const;
  const group = { kind: 'group', name: 'b c', weight: 2, maxRequests: 9 } as const;
  const shapeOf = (check: BatchedCheck, assumption: KeyAssumption = 'inWindow'): unknown =>
    shapesOf({ ...checkBatchOf(naming.namesOf('key'), [check]), assumption });
  const check = { requestId: 'id', canWait: false };
  expect(shapeOf({ ...check, list: group })).toBe('');
  expect(shapeOf({ ...check, list: group }, 'unknown')).toBe('1/lists=group:b%20c:2:9;');
  expect(shapeOf({ ...check, list: lane })).toBe('1/lists=lane:a:5;');
  expect(shapeOf({ ...check, list: group, canWait: true })).toBe(
    '1/waits=1;lists=group:b%20c:2:9;',
  );
});
