import { OutageLog } from '../../../../src/limiter/outage/outage-log.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';

const BEGUN = 'the outage policy decides';
const OVER = 'the store decides again';

let clock: ManualClock;
let log: RecordedLog;
let outages: OutageLog;
beforeEach(() => {
  clock = new ManualClock(0);
  log = recordLog();
  outages = new OutageLog('local', clock, log.logger);
});

test('nothing is logged while the store decides', async () => {
  outages.storeDecided();
  await clock.advance(10_000);
  outages.storeDecided();
  expect(log.lines).toEqual([]);
});

test('the first decision of the policy is logged, and no other', async () => {
  for (let i = 0; i < 100; i += 1) {
    outages.policyDecides();
    await clock.advance(10_000);
  }
  expect(log.lines).toMatchObject([{ level: 'warn', msg: BEGUN, policy: 'local' }]);
});

test("the first decision of the store is logged, with the number of the policy's decisions", async () => {
  for (let i = 0; i < 100; i += 1) outages.policyDecides();
  await clock.advance(1000);
  for (let i = 0; i < 100; i += 1) outages.storeDecided();
  expect(log.lines.slice(1)).toMatchObject([
    { level: 'info', msg: OVER, policy: 'local', decisions: 100 },
  ]);
});

test('not every change between store and policy is logged', async () => {
  for (let i = 0; i < 100; i += 1) {
    outages.policyDecides();
    await clock.advance(999);
    outages.storeDecided();
  }
  expect(log.messages).toEqual([BEGUN]);
  await clock.advance(1);
  outages.storeDecided();
  expect(log.messages).toEqual([BEGUN, OVER]);
});

test('the next outage is logged again, and counted from its start', async () => {
  for (const decisions of [3, 2]) {
    for (let i = 0; i < decisions; i += 1) outages.policyDecides();
    await clock.advance(1000);
    outages.storeDecided();
  }
  expect(log.messages).toEqual([BEGUN, OVER, BEGUN, OVER]);
  expect(log.lines.map(({ decisions }) => decisions)).toEqual([undefined, 3, undefined, 2]);
});
