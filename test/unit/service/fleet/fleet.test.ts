import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import {
  type HistoryPage,
  type Step,
  writePages,
} from '../../../../src/service/fleet/key-history.js';
import { SharedHistories } from '../../../../src/service/fleet/shared-histories.js';
import { ManualClock } from '../../../support/manual-clock.js';
import type { Decision } from '../../../../src/limiter/limiter.js';
import { MOST_WATCHED, WatchedKeys } from '../../../../src/service/fleet/watched-keys.js';
import { quotaOf } from '../../../support/quota.js';
import {
  Fleet,
  type OtherReport,
  readReport,
  type ReplicaReport,
  writeReport,
} from '../../../../src/service/fleet/fleet.js';
import { type DeniedKey, NO_DENIALS } from '../../../../src/service/deciding/recent-denials.js';
import { systemClock } from '../../../../src/common/clock.js';

describe('histories of keys', () => {
  /** The 20th minute has just begun, and with it the step 600. */
  const NOW = 20 * 60_000;

  let clock: ManualClock;
  let pages: Map<number, Record<string, string>>;
  let read: number[];
  let isDown: boolean;
  let histories: SharedHistories;
  beforeEach(() => {
    clock = new ManualClock(NOW);
    pages = new Map();
    read = [];
    isDown = false;
    histories = new SharedHistories((_key, minute) => {
      read.push(minute);
      if (isDown) return Promise.reject(new StoreUnavailableError());
      return Promise.resolve(pages.get(minute) ?? {});
    }, clock);
  });

  const step = (number: number, more: Partial<Step> = {}): Step => ({
    ...{ number, approved: 1, denied: 0, waiting: 0, waited: 0, waitedMillis: 0 },
    ...more,
  });

  function share(replica: string, ...steps: Step[]): void {
    for (const { minute, text } of writePages(steps)) {
      pages.set(minute, { ...pages.get(minute), [replica]: text });
    }
  }

  const look = (...living: string[]) => histories.look('key', new Set(living));

  test('the replicas are added up, and steps that nobody has counted are left open', async () => {
    share('a', step(595, { waited: 1, waitedMillis: 100 }), step(596), step(598, { denied: 2 }));
    share('b', step(595, { waited: 3, waitedMillis: 500, waiting: 2 }), step(598, { waiting: 3 }));

    expect(await look('a', 'b')).toEqual({
      stepMillis: 2000,
      endMillis: NOW - 2000,
      approved: [2, 1, null, 2],
      denied: [0, 0, null, 2],
      waiting: [2, 0, null, 3],
      waitMillis: [150, null, null, null],
    });
  });

  test('it ends where a living replica has not shared more, and keeps what one has shared that has ended', async () => {
    share('a', step(590), step(595), step(596));
    share('b', step(595));
    share('ended', step(590), step(591));

    const { approved, endMillis } = await look('a', 'b', 'without history');
    expect([approved, endMillis]).toEqual([[2, 1, null, null, null, 2], 596 * 2000]);
    expect((await look('a')).approved).toHaveLength(7);
  });

  test('it has 450 steps at most, and none before somebody has looked', async () => {
    expect(await look('a')).toMatchObject({ endMillis: NOW, approved: [] });
    share('a', ...Array.from({ length: 470 }, (_, i) => step(130 + i)));
    expect((await look('a')).approved).toEqual(Array.from({ length: 450 }, () => 1));
  });

  test('once a living replica has shared its steps, a look reads the newest minutes, and the others in turns', async () => {
    const all = Array.from({ length: 16 }, (_, i) => 5 + i);
    share('ended', step(590));
    await look('a');
    expect(read.splice(0)).toEqual(all);
    share('a', step(595));
    await look('a');
    expect(read.splice(0)).toEqual(all);
    const older: number[] = [];
    for (let i = 0; i < 15; i += 1) {
      await look('a');
      const minutes = read.splice(0);
      expect(minutes.slice(-2)).toEqual([19, 20]);
      older.push(...minutes.slice(0, -2));
    }
    expect(older.sort((a, b) => a - b)).toEqual(Array.from({ length: 14 }, (_, i) => 5 + i));
  });

  test('the history that was read stays while the store is down', async () => {
    share('a', step(597), step(598));
    const before = await look('a');
    isDown = true;
    await clock.advance(20_000);
    expect(await look('a')).toEqual(before);
  });

  test('a page of another form is ignored', async () => {
    pages.set(20, { a: 'none', b: '[[1,2]]', c: '{}' });
    expect((await look('a', 'b', 'c')).approved).toEqual([]);
  });
});

describe('watched keys', () => {
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
    keys = new WatchedKeys({ waiting: (key = '') => waiting.get(key) ?? 0 }, clock);
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
});

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

describe('the fleet', () => {
  const REPORT = {
    ...{ replica: 'this', uptimeMillis: 1, waiting: 0, rules: 'none', denied: [] },
    decisions: { approved: 0, denied: 0, shadowed: 0, withdrawn: 0, failed: 0 },
  };

  test('asks one question at a time, and those who come meanwhile share the next one', async () => {
    const watchedKeys = new WatchedKeys({ waiting: () => 0 }, systemClock);
    const questions: { keys: readonly string[]; answer: (reports: OtherReport[]) => void }[] = [];
    const fleet = new Fleet({
      report: () => Promise.resolve(REPORT),
      watchedKeys,
      open: () => ({
        read: (keys) => new Promise((answer) => questions.push({ keys, answer })),
        readPages: () => Promise.resolve({}),
      }),
    });
    const looks = [fleet.look('first')];
    await Promise.resolve();
    const others = Array.from({ length: 20 }, (_, i) => `other ${i}`);
    looks.push(...others.map((key) => fleet.look(key)));
    await Promise.resolve();
    expect(questions.map(({ keys }) => keys)).toEqual([['first']]);

    questions[0]!.answer([]);
    await looks[0];
    expect(questions.map(({ keys }) => keys)).toEqual([['first'], ['first', ...others]]);
    questions[1]!.answer([]);
    await Promise.all(looks);
    watchedKeys.close();
  });
});
