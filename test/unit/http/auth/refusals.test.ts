import { Refusals } from '../../../../src/http/auth/refusals.js';
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

const logged = (): unknown[] => log.lines.map(({ refused }) => refused);

test('the first is logged at once', () => {
  refusals.note('token_unknown');

  expect(log.lines).toMatchObject([
    {
      level: 'warn',
      msg: 'requests refused for their tokens',
      refused: { token_unknown: 1 },
    },
  ]);
});

test('all others within a second share a line at its end, also where no more come', async () => {
  for (let i = 0; i < 100; i += 1) refusals.note('token_unknown');
  refusals.note('key_not_allowed');
  await clock.advance(999);
  expect(logged()).toEqual([{ token_unknown: 1 }]);
  await clock.advance(1);
  expect(logged()).toEqual([{ token_unknown: 1 }, { token_unknown: 99, key_not_allowed: 1 }]);
  refusals.note('scope_missing');
  await clock.advance(999);
  expect(log.lines).toHaveLength(2);
  await clock.advance(1);

  expect(logged()[2]).toEqual({ scope_missing: 1 });
});

test('nothing is logged while nobody is refused, and the next is logged at once', async () => {
  refusals.note('token_required');
  await clock.advance(100_000);
  expect(log.lines).toHaveLength(1);
  refusals.note('token_required');

  expect(logged()).toEqual([{ token_required: 1 }, { token_required: 1 }]);
});

test('those of the last second are logged when the service ends, and no timer is left', async () => {
  refusals.note('token_required');
  refusals.note('token_required');
  refusals.close();
  expect(logged()).toEqual([{ token_required: 1 }, { token_required: 1 }]);
  await clock.advance(100_000);

  expect(log.lines).toHaveLength(2);
});

test('each is counted by its reason', () => {
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
