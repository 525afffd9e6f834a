import type { Decision } from '../../../../src/limiter/limiter.js';
import {
  CountedKeys,
  MOST_KEPT,
  MOST_REPORTED,
  MOST_WATCHED,
} from '../../../../src/service/fleet/counted-keys.js';
import { readReport, writeReport } from '../../../../src/service/fleet/fleet.js';
import type { HistoryPage } from '../../../../src/service/fleet/key-history.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { quotaOf } from '../../../support/quota.js';

const APPROVED: Decision = { outcome: 'approved', requestId: 'id' };
const WAITED: Decision = { ...APPROVED, waited: true };
const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1) };
const MINUTES = 60_000;
const STEP = 2000;

/** Half a second after the step 30 has begun, with which the span 6 begins. */
const START = 60_500;

let clock: ManualClock;
let waiting: Map<string, number>;
let decisions: Record<'approved' | 'denied' | 'shadowed' | 'withdrawn' | 'failed', number>;
let keys: CountedKeys;
beforeEach(() => {
  clock = new ManualClock(START);
  waiting = new Map();
  decisions = { approved: 0, denied: 0, shadowed: 0, withdrawn: 0, failed: 0 };
  keys = new CountedKeys({ waiting: (key = '') => waiting.get(key) ?? 0 }, clock, () =>
    Promise.resolve({ ...decisions }),
  );
  keys.start();
});
afterEach(() => keys.close());

/** Several decisions about a key, counted as in metrics. */
function record(key: string, decision: Decision, times = 1, isHeld = false): void {
  for (let i = 0; i < times; i += 1) keys.record(key, decision, 1, isHeld);
  if (decision.outcome === 'approved' || decision.outcome === 'denied') {
    decisions[decision.outcome] += times;
  }
}

const activityOf = (key: string) => keys.activity()!.keys.find((one) => one.key === key);

describe('the busiest keys', () => {
  test('have their approvals and denials a second of the last ten seconds', async () => {
    expect(keys.activity()).toBeUndefined();
    record('a', APPROVED, 6);
    record('b', DENIED, 4);
    await clock.advance(STEP);
    expect(keys.activity()).toEqual({
      span: 5,
      total: { approved: 3, denied: 2, series: [], shadowed: 0, withdrawn: 0, failed: 0 },
      keys: [
        { key: 'a', approved: 3, denied: 0, series: [], isHeldOnly: false },
        { key: 'b', approved: 0, denied: 2, series: [], isHeldOnly: undefined },
      ],
    });
    await clock.advance(4 * STEP);
    expect(activityOf('a')).toMatchObject({ approved: 0.6, series: [6] });
    await clock.advance(STEP);
    expect(activityOf('a')).toMatchObject({ approved: 0, series: [6] });
  });

  test('add up to the total of the same steps', async () => {
    for (let i = 0; i < 40; i += 1) {
      record(`key ${i % 7}`, APPROVED, i);
      record(`key ${i % 5}`, DENIED, i % 3);
      await clock.advance(STEP);
      const { total, keys: all } = keys.activity()!;
      const sum = (of: 'approved' | 'denied') => all.reduce((sum, one) => sum + one[of], 0);
      expect(sum('approved')).toBeCloseTo(total.approved, 9);
      expect(sum('denied')).toBeCloseTo(total.denied, 9);
      const last = all.reduce((sum, { series }) => sum + (series.at(-1) ?? 0), 0);
      expect(last).toBe(total.series.at(-1) ?? 0);
    }
  });

  test('add up to the total if the first steps ended late, and while the totals of a step are asked for', async () => {
    keys.close();
    const answers: (() => void)[] = [];
    keys = new CountedKeys(
      { waiting: () => 0 },
      clock,
      () => new Promise((resolve) => answers.push(() => resolve({ ...decisions }))),
    );
    // As with a loop that is blocked.
    await clock.advance(2 * STEP);
    keys.start();
    record('a', APPROVED, 6);
    await clock.advance(STEP);
    expect(keys.activity()).toBeUndefined();
    answers.shift()!();
    await clock.advance(0);
    expect(keys.activity()).toMatchObject({ total: { approved: 1 }, keys: [{ approved: 1 }] });
    record('a', APPROVED, 6);
    await clock.advance(STEP);
    expect(keys.activity()).toMatchObject({ total: { approved: 1 }, keys: [{ approved: 1 }] });
  });

  test('have a series of five minutes at most', async () => {
    for (let i = 0; i < 300; i += 1) {
      record('a', APPROVED, 2);
      await clock.advance(STEP);
    }
    expect(activityOf('a')!.series).toEqual(Array.from({ length: 30 }, () => 10));
  });

  test('are found among a hundred thousand others, and take bounded memory', async () => {
    let key = 0;
    for (let step = 0; step < 20; step += 1) {
      for (let i = 0; i < 5000; i += 1) {
        record(`other ${key++}`, APPROVED);
        if (i % 25 === 0) record('hot', APPROVED);
      }
      await clock.advance(STEP);
    }
    expect(activityOf('hot')).toMatchObject({ approved: 100 });
    const counted = Array.from({ length: key }, (_, i) => keys.stepsOf(`other ${i}`).length);
    expect(counted.filter((length) => length > 0).length).toBeLessThan(MOST_KEPT);
    expect(keys.activity()!.keys).toHaveLength(MOST_REPORTED);
  });

  test('stay when as many others come once', async () => {
    for (let i = 0; i < MOST_KEPT; i += 1) record(`busy ${i}`, APPROVED, 3);
    await clock.advance(STEP);
    for (let i = 0; i < 10_000; i += 1) record(`other ${i}`, APPROVED);
    await clock.advance(STEP);
    const stayed = Array.from({ length: MOST_KEPT }, (_, i) => keys.stepsOf(`busy ${i}`).length);
    expect(stayed).toEqual(stayed.map(() => 2));
  });

  test('are forgotten after 15 minutes without a decision', async () => {
    record('a', APPROVED);
    await clock.advance(15 * MINUTES);
    expect(keys.stepsOf('a')).toHaveLength(450);
    await clock.advance(2 * STEP);
    expect(keys.stepsOf('a')).toEqual([]);
  });

  test('are of held approvals only if none of the last five minutes had no hold', async () => {
    record('a', APPROVED, 1, true);
    record('denied', DENIED);
    await clock.advance(STEP);
    expect(activityOf('a')!.isHeldOnly).toBe(true);
    expect(activityOf('denied')!.isHeldOnly).toBeUndefined();
    record('a', APPROVED);
    await clock.advance(STEP);
    expect(activityOf('a')!.isHeldOnly).toBe(false);
    await clock.advance(5 * MINUTES);
    record('a', APPROVED, 1, true);
    await clock.advance(STEP);
    expect(activityOf('a')!.isHeldOnly).toBe(true);
  });

  test('may have any name of 256 bytes, also one of an object', async () => {
    const names = ['__proto__', 'constructor', '"\\\n', 'ж'.repeat(128)];
    for (const name of names) record(name, APPROVED, 2);
    await clock.advance(STEP);
    const denied = { denied: [], decisions, replica: 'a', uptimeMillis: 1, waiting: 0, rules: '' };
    const text = writeReport({ ...denied, activity: keys.activity() });
    const read = readReport(text)!.activity!.keys;
    expect(read.map(({ key, approved }) => [key, approved])).toEqual(
      names.map((name) => [name, 1]),
    );
  });

  test('a report of 200 keys with the longest names has less than 200 KB', async () => {
    for (let i = 0; i < 150; i += 1) {
      for (let k = 0; k < MOST_REPORTED; k += 1) record(`${k}`.padEnd(256, 'x'), APPROVED, 3);
      await clock.advance(STEP);
    }
    expect(JSON.stringify(keys.activity()).length).toBeLessThan(200_000);
  });
});

describe('the steps of a key', () => {
  test('begin with its first decision, or with a look', async () => {
    keys.watch('a');
    record('b', APPROVED);
    for (const decision of [APPROVED, DENIED, DENIED]) keys.record('a', decision, 1, false);
    keys.record('a', WAITED, 300.2, false);
    keys.record('a', WAITED, 500, false);
    keys.record('a', { outcome: 'withdrawn' }, 1, false);
    keys.record('other', { outcome: 'withdrawn' }, 1, false);
    waiting.set('a', 4);
    expect(keys.stepsOf('a')).toEqual([]);
    await clock.advance(1500);
    const nothing = { approved: 0, denied: 0, waited: 0, waitedMillis: 0, waiting: 0 };
    expect(keys.stepsOf('b')).toEqual([{ ...nothing, number: 30, approved: 1 }]);
    await clock.advance(STEP);

    expect(keys.stepsOf('a')).toEqual([
      { number: 30, approved: 3, denied: 2, waiting: 4, waited: 2, waitedMillis: 800 },
      { ...nothing, waiting: 4, number: 31 },
    ]);
    expect(keys.stepsOf('other')).toEqual([]);
  });

  test('begin with the first whole step after a look, if decisions before it may not have been counted', async () => {
    for (let i = 0; i < 2 * MOST_KEPT; i += 1) record(`other ${i}`, APPROVED);
    record('a', APPROVED);
    keys.watch('a');
    record('a', APPROVED);
    await clock.advance(1500);
    expect(keys.stepsOf('a')).toEqual([]);
    // There is room for half of as many new keys: every third comes in.
    record('new', APPROVED);
    record('c', APPROVED);
    keys.watch('c');
    record('c', APPROVED);
    await clock.advance(STEP);
    expect(keys.stepsOf('a').map(({ number }) => number)).toEqual([31]);
    expect(keys.stepsOf('c')).toEqual([]);
    keys.watch('d');
    await clock.advance(STEP);
    expect(keys.stepsOf('d').map(({ number }) => number)).toEqual([32]);
  });

  test('are kept for 15 minutes after the last look', async () => {
    keys.watch('a');
    await clock.advance(10 * MINUTES);
    keys.watch('a');
    await clock.advance(15 * MINUTES);
    expect(keys.stepsOf('a')).toHaveLength(450);
    await clock.advance(STEP);
    expect(keys.stepsOf('a')).toEqual([]);
  });

  test('are kept of the keys that were looked at last, and of the busiest of the others', async () => {
    for (let i = 0; i < MOST_WATCHED; i += 1) keys.watch(String(i));
    keys.watch('0');
    for (let i = 0; i < MOST_KEPT; i += 1) record(`busy ${i}`, APPROVED);
    keys.watch('one more');
    await clock.advance(2 * STEP);

    const counted = ['0', '1', '2', 'one more'].map((key) => keys.stepsOf(key).length);
    expect(counted).toEqual([2, 0, 2, 2]);
  });

  test('are shared once, and again if that fails, with what was counted before the first look', async () => {
    const written: HistoryPage[] = [];
    const share = (fails = false): Promise<void> =>
      keys.share('a', (page) => {
        written.push(page);
        return fails ? Promise.reject(new Error('not written')) : Promise.resolve();
      });
    await share();
    record('a', APPROVED);
    // The steps 30 to 59 are in the minute 1, and 60 is in the minute 2.
    await clock.advance(1 * MINUTES + 1500);
    keys.watch('a');
    await expect(share(true)).rejects.toThrow('not written');
    expect(written.splice(0).map(({ minute }) => minute)).toEqual([1, 2]);
    await share();
    const lengths = written.splice(0).map(({ text }) => (JSON.parse(text) as []).length);
    expect(lengths).toEqual([30, 1]);
    await share();
    expect(written).toEqual([]);
    await clock.advance(STEP);
    await share();
    expect(written.map(({ minute, text }) => [minute, (JSON.parse(text) as []).length])).toEqual([
      [2, 2],
    ]);
  });

  test('are not counted after the end', async () => {
    record('a', APPROVED);
    keys.close();
    record('a', APPROVED);
    await clock.advance(4000);
    expect([keys.stepsOf('a'), clock.isAwaited]).toEqual([[], false]);
  });
});
