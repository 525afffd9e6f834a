import type { Decision } from '../../../../src/limiter/limiter.js';
import type { HistoryPage } from '../../../../src/service/fleet/history-pages.js';
import { MOST_WATCHED, WatchedKeys } from '../../../../src/service/fleet/watched-keys.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { quotaOf } from '../../../support/quota.js';

const APPROVED: Decision = { outcome: 'approved', requestId: 'id' };
const WAITED: Decision = { ...APPROVED, waited: true };
const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1) };
const MINUTES = 60_000;

/** Half a second after the step 30 has begun. */
const START = 60_500;

let clock: ManualClock;
let waiting: Map<string, number>;
let keys: WatchedKeys;
beforeEach(() => {
  clock = new ManualClock(START);
  waiting = new Map();
  keys = new WatchedKeys({ limiter: { waitingOf: (key) => waiting.get(key) ?? 0 }, clock });
});

test('the decisions about a key are counted by steps, from the first whole one on', async () => {
  keys.watch('a');
  keys.record('a', APPROVED, 1);
  await clock.advance(1500);
  expect(keys.stepsOf('a')).toEqual([]);

  for (const decision of [APPROVED, DENIED, DENIED]) keys.record('a', decision, 1);
  keys.record('a', WAITED, 300.2);
  keys.record('a', WAITED, 500);
  keys.record('a', { outcome: 'withdrawn' }, 1);
  keys.record('other', APPROVED, 1);
  waiting.set('a', 4);
  await clock.advance(4000);

  const nothing = { approved: 0, denied: 0, waited: 0, waitedMillis: 0, waiting: 4 };
  expect(keys.stepsOf('a')).toEqual([
    { number: 31, approved: 3, denied: 2, waiting: 4, waited: 2, waitedMillis: 800 },
    { ...nothing, number: 32 },
  ]);
  expect(keys.stepsOf('other')).toEqual([]);
});

test('a key is counted for 15 minutes after the last look, with a history of 15 minutes', async () => {
  keys.watch('a');
  await clock.advance(10 * MINUTES);
  keys.watch('a');
  await clock.advance(15 * MINUTES);
  expect(keys.stepsOf('a')).toHaveLength(450);
  await clock.advance(2000);
  expect(keys.stepsOf('a')).toEqual([]);
  expect(clock.isAwaited).toBe(false);
});

test('of too many keys, those are counted that were looked at last', async () => {
  for (let i = 0; i < MOST_WATCHED; i += 1) keys.watch(String(i));
  keys.watch('0');
  keys.watch('one more');
  await clock.advance(4000);

  const counted = ['0', '1', '2', 'one more'].map((key) => keys.stepsOf(key).length);
  expect(counted).toEqual([1, 0, 1, 1]);
});

test('each step is shared once, and again if that fails', async () => {
  const written: HistoryPage[] = [];
  const share = (fails = false): Promise<void> =>
    keys.share('a', (page) => {
      written.push(page);
      return fails ? Promise.reject(new Error('not written')) : Promise.resolve();
    });
  keys.watch('a');
  await share();
  expect(written).toEqual([]);
  // The steps 31 to 59 are in the minute 1, and 60 is in the minute 2.
  await clock.advance(1 * MINUTES + 1500);
  await expect(share(true)).rejects.toThrow('not written');
  expect(written.splice(0).map(({ minute }) => minute)).toEqual([1, 2]);
  await share();
  expect(written.splice(0).map(({ minute }) => minute)).toEqual([1, 2]);
  await share();
  expect(written).toEqual([]);
  await clock.advance(2000);
  await share();
  expect(written.map(({ minute, text }) => [minute, (JSON.parse(text) as []).length])).toEqual([
    [2, 2],
  ]);
});

test('nothing is counted after the end', async () => {
  keys.watch('a');
  keys.close();
  await clock.advance(4000);
  expect([keys.stepsOf('a'), clock.isAwaited]).toEqual([[], false]);
});
