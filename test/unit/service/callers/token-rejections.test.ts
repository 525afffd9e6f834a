import { TokenRejections } from '../../../../src/service/callers/token-rejections.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';

let clock: ManualClock;
let log: RecordedLog;
let rejections: TokenRejections;
beforeEach(() => {
  clock = new ManualClock(0);
  log = recordLog();
  rejections = new TokenRejections(clock, log.logger);
});

test('rejections are logged by their reasons, and the last second is logged at the end', () => {
  rejections.record('token_unknown');
  rejections.record('key_not_allowed');
  rejections.close();

  expect(log.lines).toMatchObject([
    { level: 'warn', msg: 'requests rejected for their tokens', rejected: { token_unknown: 1 } },
    { level: 'warn', rejected: { key_not_allowed: 1 } },
  ]);
});

test('rejections are counted by their reasons', () => {
  rejections.record('token_unknown');
  rejections.record('token_unknown');
  rejections.record('scope_missing');

  expect(rejections.counts).toEqual({
    token_required: 0,
    token_unknown: 2,
    scope_missing: 1,
    key_not_allowed: 0,
  });
});
