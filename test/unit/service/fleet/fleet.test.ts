import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { type Step, writePages } from '../../../../src/service/fleet/key-history.js';
import { SharedHistories } from '../../../../src/service/fleet/shared-histories.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { CountedKeys } from '../../../../src/service/fleet/counted-keys.js';
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
  const OWN = {
    ...{ replica: 'this', uptimeMillis: 1, waiting: 0, rules: 'none', denied: [] },
    decisions: { approved: 0, denied: 0, shadowed: 0, withdrawn: 0, failed: 0 },
  };
  const countedKeys = new CountedKeys({ waiting: () => 0 }, systemClock, () =>
    Promise.resolve(OWN.decisions),
  );

  test('asks one question at a time, and those who come meanwhile share the next one', async () => {
    const questions: { keys: readonly string[]; answer: (reports: OtherReport[]) => void }[] = [];
    const fleet = new Fleet({
      report: () => Promise.resolve(OWN),
      countedKeys,
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
  });

  const SPAN = 100;
  type ReportedActivity = NonNullable<ReplicaReport['activity']>;
  type ReportedKey = ReportedActivity['keys'][number];
  const ofKey = (key: string, more: Partial<ReportedKey> = {}): ReportedKey => ({
    ...{ key, approved: 0, denied: 0, series: [], isHeldOnly: false },
    ...more,
  });
  const activity = (
    keys: readonly ReportedKey[],
    more: Partial<ReportedActivity['total']> = {},
    span = SPAN,
  ): ReportedActivity => ({
    span,
    total: { approved: 0, denied: 0, series: [], shadowed: 0, withdrawn: 0, failed: 0, ...more },
    keys,
  });

  /** What the fleet shows with these reports, the first of which is of the replica that is asked. */
  function seen(
    own: ReportedActivity | undefined,
    ...others: Partial<OtherReport & { report: object }>[]
  ) {
    const read = others.map(({ report, ageMillis = 0 }, i) => ({
      text: JSON.stringify({ ...OWN, replica: `other ${i}`, ...report }),
      ageMillis,
    }));
    return new Fleet({
      report: () => Promise.resolve({ ...OWN, activity: own }),
      countedKeys,
      open: () => ({
        read: () => Promise.resolve(read),
        readPages: () => Promise.resolve({}),
      }),
    }).look();
  }

  test('adds up what all replicas decide, of all keys and of each', async () => {
    const own = activity([ofKey('a', { approved: 2, denied: 1, series: [5, 20] }), ofKey('b')], {
      ...{ approved: 2, denied: 1, shadowed: 0.5, failed: 3, series: [5, 20] },
    });
    const other = activity([ofKey('a', { approved: 3, series: [1, null, 30] }), ofKey('c')], {
      ...{ approved: 7, withdrawn: 1, series: [1, null, 30] },
    });
    const view = await seen(own, { report: { activity: other } });

    const sum = { approved: 5, denied: 1, series: [1, 5, 50] };
    expect(view.byKey.get('a')).toEqual({ ...sum, isHeldOnly: false });
    expect([...view.byKey.keys()]).toEqual(['a', 'b', 'c']);
    const outcomes = { shadowed: 0.5, withdrawn: 1, failed: 3 };
    expect(view.total).toEqual({ ...sum, ...outcomes, approved: 9 });
    expect(view.replicas.map(({ perSecond }) => perSecond)).toEqual([3.5, 8]);
  });

  test.each([
    ['one span late', -1, [8, 9, 1]],
    ['one span early', 1, [1, 1, 8]],
    ['a day wrong', 8640, [1, 8, 9]],
  ])('a replica whose clock is %s is added where its series belongs', async (_name, by, series) => {
    const own = activity([ofKey('a', { series: [1, 1, 1] })]);
    const other = activity([ofKey('a', { series: [7, 8] })], {}, SPAN + by);
    const { byKey } = await seen(own, { report: { activity: other } });
    expect(byKey.get('a')!.series).toEqual(series);
  });

  test('a replica of the version before, or with activity of another form, is seen without it', async () => {
    const own = activity([ofKey('a', { approved: 2 })], { approved: 2 });
    const view = await seen(
      own,
      { report: {} },
      { report: { activity: { span: 'last', keys: [] } } },
      { report: { activity: activity([ofKey('a', { approved: -1 })]) } },
    );
    expect(view.replicas.map(({ perSecond }) => perSecond)).toEqual([
      2,
      undefined,
      undefined,
      undefined,
    ]);
    expect(view.total).toMatchObject({ approved: 2 });
    expect(view.byKey.get('a')).toMatchObject({ approved: 2 });
  });

  test('a report that the version before reads has only one field more', () => {
    const { activity: more, ...before } = JSON.parse(
      writeReport({ ...OWN, activity: activity([]) }),
    ) as ReplicaReport;
    expect(before).toEqual(OWN);
    expect(more).toEqual(activity([]));
  });

  test('the rates of a report that is too old are gone', async () => {
    const other = activity([ofKey('a', { approved: 3 })], { approved: 3 });
    const view = (ageMillis: number) =>
      seen(activity([]), { report: { activity: other }, ageMillis });

    expect((await view(9000)).byKey.get('a')).toMatchObject({ approved: 3 });
    const late = await view(11_000);
    expect([late.byKey.size, late.total?.approved]).toEqual([0, 0]);
    expect(late.replicas[1]).toMatchObject({ replica: 'other 0', perSecond: undefined });
  });

  test('a key is of held approvals only if no replica has approved it without a hold', async () => {
    const flags = async (...all: (boolean | undefined)[]) => {
      const [own, ...others] = all.map((isHeldOnly) => activity([ofKey('a', { isHeldOnly })]));
      const view = await seen(own, ...others.map((one) => ({ report: { activity: one } })));
      return view.byKey.get('a')!.isHeldOnly;
    };
    expect(await flags(true, undefined)).toBe(true);
    expect(await flags(true, false)).toBe(false);
    expect(await flags(undefined, undefined)).toBeUndefined();
  });
});
