import {
  readReport,
  type ReplicaReport,
  writeReport,
} from '../../../../src/service/fleet/replica-report.js';
import { type DeniedKey, NO_DENIALS } from '../../../../src/service/deciding/recent-denials.js';

const DENIED: DeniedKey = {
  key: 'a',
  perSecond: 0.5,
  count: 3,
  byReason: { ...NO_DENIALS, queue_full: 2, queue_full_of_group: 1 },
  lastReason: 'queue_full_of_group',
  isShadow: false,
  sinceMillis: 9,
  lastMillis: 4,
};
const REPORT: ReplicaReport = {
  replica: 'one',
  uptimeMillis: 10,
  decisions: { approved: 1, denied: 3, shadowed: 0, withdrawn: 0, failed: 0 },
  waiting: 2,
  rules: 'd1',
  denied: [DENIED],
};

test('a report is read as it was written', () => {
  expect(readReport(writeReport(REPORT))).toEqual(REPORT);
});

test('a reason that a replica of an older version does not know has no denials', () => {
  const { queue_full_of_group: unknown, ...byReason } = NO_DENIALS;
  const older = { ...DENIED, lastReason: 'queue_full', byReason: { ...byReason, queue_full: 2 } };
  const report = readReport(JSON.stringify({ ...REPORT, denied: [older] }));

  expect(unknown).toBe(0);
  expect(report?.denied[0]?.byReason).toEqual({ ...NO_DENIALS, queue_full: 2 });
});

test('a report of another form is not read', () => {
  expect(readReport(JSON.stringify({ ...REPORT, waiting: 'some' }))).toBeUndefined();
});
