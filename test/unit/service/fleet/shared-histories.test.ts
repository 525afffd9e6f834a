import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { type Step, writePages } from '../../../../src/service/fleet/history-pages.js';
import { SharedHistories } from '../../../../src/service/fleet/shared-histories.js';
import { ManualClock } from '../../../support/manual-clock.js';

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
