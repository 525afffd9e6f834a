import type { Assessment } from '../../../src/readiness/readiness.js';
import { isReadySoon } from '../../../src/readiness/ready-soon.js';
import { ManualClock } from '../../support/manual-clock.js';

const clock = new ManualClock(0);

function isReadyWhen(assessment: Promise<Assessment>): Promise<boolean> {
  return isReadySoon({ assess: () => assessment }, clock);
}

test.each([
  [true, 'nothing is wrong', []],
  [false, 'there is a reason', ['draining']],
])('is %j if %s', async (isReady, _why, reasons) => {
  const assessment = Promise.resolve({ reasons, remarks: ['store full'] });
  expect(await isReadyWhen(assessment)).toBe(isReady);
});

test('is false after a fault', async () => {
  expect(await isReadyWhen(Promise.reject(new Error('no such command')))).toBe(false);
});

test('is false if the answer is late', async () => {
  const isReady = isReadyWhen(new Promise(() => undefined));
  await clock.advance(2000);
  expect(await isReady).toBe(false);
});
