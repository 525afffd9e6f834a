import { Refusals } from '../../../../src/service/callers/refusals.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';

let clock: ManualClock;
let log: RecordedLog;
let refusals: Refusals;
beforeEach(() => {
  clock = new ManualClock(0);
  log = recordLog();
  refusals = new Refusals(clock, log.logger);
});

test('are logged by their reasons, and those of the last second at the end', () => {
  refusals.note('token_unknown');
  refusals.note('key_not_allowed');
  refusals.close();

  expect(log.lines).toMatchObject([
    { level: 'warn', msg: 'requests refused for their tokens', refused: { token_unknown: 1 } },
    { level: 'warn', refused: { key_not_allowed: 1 } },
  ]);
});

test('are counted by their reasons', () => {
  refusals.note('token_unknown');
  refusals.note('token_unknown');
  refusals.note('scope_missing');

  expect(refusals.counts).toEqual({
    token_required: 0,
    token_unknown: 2,
    scope_missing: 1,
    key_not_allowed: 0,
  });
});
