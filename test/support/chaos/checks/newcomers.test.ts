import { ownLimit } from '../../../../src/limiter/limits.js';
import { WINDOW_MILLIS } from '../limits.js';
import { passedByNewcomers } from './newcomers.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';

const list = { kind: 'lane', name: 'batch', headStartMillis: 0 } as const;
const waiter = entry({
  kind: 'wait',
  requestId: 'waiter',
  lane: 'batch',
  sentAt: 0,
  endedAt: 9000,
});
const newcomer = entry({ requestId: 'newcomer', lane: 'interactive', sentAt: 4900, endedAt: 5100 });
const own = ownLimit(WINDOW_MILLIS, 9);

/** The waiter has waited for `waitedMillis` when the check in the other lane is approved. */
function passed(
  waitedMillis: number,
  {
    limits = [own],
    servedAt = 8000,
    ...others
  }: { limits?: (typeof own)[]; servedAt?: number; faults?: ReturnType<typeof fault>[] } = {},
): string[] {
  const waited = [{ id: 'waiter', hits: 1, arrival: 5000 - waitedMillis, list }];
  return passedByNewcomers(
    evidenceOf({
      entries: [waiter, newcomer],
      approvals: [
        observed('waiter', servedAt),
        observed('newcomer', 5000, { isFromQueue: false, waited, limits }),
      ],
      ...others,
    }),
  );
}

test('a check that passes a waiter by more than its head start is found', () => {
  expect(passed(2001)).toEqual([expect.stringContaining('in the lane interactive')]);
  expect(passed(1999)).toEqual([]);
});

test('nobody is passed that had a turn before, or that a limit of its lane stops', () => {
  expect(passed(2001, { servedAt: 5000 })).toEqual([]);
  const share = { ...own, name: 'share', lanes: ['batch'] };
  expect(passed(2001, { limits: [own, share] })).toEqual([]);
  const ofBoth = { ...share, lanes: ['batch', 'interactive'] };
  expect(passed(2001, { limits: [own, ofBoth] })).toHaveLength(1);
});

test('a check that passes a waiter of its own lane is found', () => {
  const ofBatch = { ...newcomer, lane: 'batch' };
  const entries = [waiter, ofBatch];
  const waited = [{ id: 'waiter', hits: 1, arrival: 4999, list }];
  const approvals = [
    observed('waiter', 8000),
    observed('newcomer', 5000, { isFromQueue: false, waited }),
  ];
  expect(passedByNewcomers(evidenceOf({ entries, approvals }))).toHaveLength(1);
});

test('a check that passes a waiter of its own group is found, but not one of another', () => {
  const ofTenant = { ...newcomer, lane: undefined, group: 'tenant' };
  const passedIn = (name: string): string[] => {
    const group = { kind: 'group', name, weight: 1, maxRequests: undefined } as const;
    const waited = [{ id: 'waiter', hits: 1, arrival: 4000, list: group }];
    const approvals = [
      observed('waiter', 8000),
      observed('newcomer', 5000, { isFromQueue: false, waited }),
    ];
    return passedByNewcomers(evidenceOf({ entries: [waiter, ofTenant], approvals }));
  };
  expect(passedIn('tenant')).toEqual([expect.stringContaining('in the group tenant')]);
  expect(passedIn('other')).toEqual([]);
});

test('a waiter whose replica has no Redis may be passed', () => {
  expect(passed(2001, { faults: [fault({ isolates: [0] })] })).toEqual([]);
});
