import type { Happening, Run } from '../key-history.js';
import { overfull, unserved } from './limits.js';
import {
  approved,
  confirmed,
  evidenceOf,
  granted,
  joined,
  lapsed,
  ended,
  run,
  termsOf,
  withdrawn,
} from './sample-evidence.js';

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `id ${i}`);

/** A run on another key than `fixed`. */
const on = (key: string, at: number, ...happenings: readonly Happening[]): Run => ({
  ...run(at, ...happenings),
  key,
});

describe('more than the maximum', () => {
  const full = run(100, ...ids(10).map(approved));

  test('is found, and the maximum is not', () => {
    expect(overfull(evidenceOf({ runs: [full] }))).toEqual([]);
    expect(overfull(evidenceOf({ runs: [full, run(200, approved('one more'))] }))).toEqual([
      'fixed: 11 counted at 200, and not 10',
    ]);
  });

  test('is found by the hits', () => {
    const terms = [termsOf('several', { hits: 3 })];
    const runs = [run(100, ...ids(8).map(approved), granted('several', 1100))];
    expect(overfull(evidenceOf({ runs, terms }))).toEqual(['fixed: 11 counted at 100, and not 10']);
  });

  test('does not count what was ended, what has lapsed, and what a window has ended', () => {
    const released5 = [full, run(200, ended('id 5'), approved('one more'))];
    expect(overfull(evidenceOf({ runs: released5 }))).toEqual([]);
    const lapse = [
      run(100, ...ids(9).map(approved), granted('a', 1100)),
      run(1100, lapsed('a', 1100), approved('one more')),
    ];
    expect(overfull(evidenceOf({ runs: lapse }))).toEqual([]);
    const next = {
      ...run(1100, ...ids(10).map((id) => approved(`next ${id}`))),
      windowStart: 1100,
    };
    expect(overfull(evidenceOf({ runs: [full, next] }))).toEqual([]);
  });

  test('counts a grant in the window in which it is confirmed', () => {
    const runs = [
      { ...run(100, granted('a', 1100)), windowStart: 100 },
      { ...run(1099, confirmed('a')), windowStart: 1050 },
      run(1200, ...ids(10).map(approved)),
    ];
    expect(overfull(evidenceOf({ runs }))).toEqual(['fixed: 11 counted at 1200, and not 10']);
  });

  test('counts what is held in each window', () => {
    const held = { id: 'held', what: 'approved' as const, hold: { lapsesAt: 3000, millis: 2900 } };
    const next = { ...run(1100, ...ids(10).map(approved)), windowStart: 1100 };
    expect(overfull(evidenceOf({ runs: [run(100, held), next] }))).toHaveLength(1);
  });

  test('is found in any span of a sliding window', () => {
    const after = (at: number) =>
      evidenceOf({
        runs: [on('sliding', 100, ...ids(10).map(approved)), on('sliding', at, approved('a'))],
      });
    expect(overfull(after(1090))).toHaveLength(1);
    expect(overfull(after(1100))).toEqual([]);
  });

  test('is found in a bucket by what has drained', () => {
    const after = (at: number) =>
      evidenceOf({
        runs: [on('bucket', 1000, ...ids(4).map(approved)), on('bucket', at, approved('a'))],
      });
    // A bucket drains one hit in 100 ms, and its queue is served up to 31 ms early.
    expect(overfull(after(1060))).toHaveLength(1);
    expect(overfull(after(1100))).toEqual([]);
  });
});

describe('a waiter at the head', () => {
  const waits = run(100, ...ids(10).map(approved), joined('a', 10), joined('b', 20));

  test('is found if it is not served although there is room', () => {
    const runs = [{ ...waits, windowStart: 100 }, run(1200), run(2600), run(2700)];
    expect(unserved(evidenceOf({ runs }))).toEqual([]);
    expect(unserved(evidenceOf({ runs: [...runs, run(2800), run(2900)] }))).toEqual([
      'fixed: a waited at the head from 1200 to 2800 with room for it',
    ]);
  });

  test('is not, if there is no room, or it is served or leaves', () => {
    const held = { id: 'held', what: 'approved' as const, hold: { lapsesAt: 9000, millis: 8900 } };
    const terms = [termsOf('held', { hits: 10 })];
    const isFull = [run(100, held, joined('a', 10)), run(1200), run(5000)];
    expect(unserved(evidenceOf({ runs: isFull, terms }))).toEqual([]);
    for (const ends of [granted('a', 2400), withdrawn('a')]) {
      const runs = [run(100, joined('a', 10)), run(200), run(1400, ends), run(5000)];
      expect(unserved(evidenceOf({ runs }))).toEqual([]);
    }
  });

  test('may be late on a machine that stands still', () => {
    const evidence = evidenceOf({
      runs: [run(100, joined('a', 10)), run(200), run(2000), run(2001)],
    });
    expect(unserved(evidence)).toHaveLength(1);
    expect(unserved({ ...evidence, lateMillis: () => 400 })).toEqual([]);
  });
});
