import { approvedInPauses } from './pauses.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';

const pause = entry({ kind: 'pause', sentAt: 100, endedAt: 110, pauseMillis: 500 });
const approval = entry({ requestId: 'a', sentAt: 90, endedAt: 700 });

function found(at: number, others: Parameters<typeof entry>[0][] = []): string[] {
  const entries = [pause, approval, ...others.map(entry)];
  return approvedInPauses(evidenceOf({ entries, approvals: [observed('a', at)] }));
}

test('an approval in a pause is found', () => {
  expect(found(300)).toHaveLength(1);
});

test.each([
  ['before the pause is sure to have begun', 105],
  ['when it is over', 600],
])('an approval %s is right', (_, at) => {
  expect(found(at)).toEqual([]);
});

test('a renewal in a pause is right', () => {
  const approvals = [observed('a', 300, { mayBeRenewal: true })];
  expect(approvedInPauses(evidenceOf({ entries: [pause, approval], approvals }))).toEqual([]);
});

test('a pause that another request may have ended is not judged', () => {
  const other = { kind: 'pause', sentAt: 200, endedAt: undefined, pauseMillis: 0 } as const;
  expect(found(300, [other])).toEqual([]);
  expect(found(300, [{ ...other, key: 'other' }])).toHaveLength(1);
});

test('a pause that Redis may have forgotten is not judged', () => {
  const evidence = evidenceOf({
    entries: [pause, approval],
    approvals: [observed('a', 300)],
    faults: [fault({ loses: 'unreplicated' })],
  });
  expect(approvedInPauses(evidence)).toEqual([]);
});
