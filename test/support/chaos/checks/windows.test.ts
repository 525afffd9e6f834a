import { MAX_REQUESTS, WINDOW_MILLIS } from '../limits.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';
import { judgeByRedis, judgeByTimes } from './windows.js';

const ids = Array.from({ length: MAX_REQUESTS + 1 }, (_, i) => `id-${i}`);
const tooMany = ids.map((requestId, i) => entry({ requestId, sentAt: 10 + i, endedAt: 20 + i }));
const inOneWindow = ids.map((id) => observed(id, 15));
const windowStarts = [{ at: 5, start: 0 }];

describe.each([
  ['by Redis', judgeByRedis],
  ['by times', judgeByTimes],
])('windows judged %s', (_, judge) => {
  const judged = (sample: Partial<Parameters<typeof evidenceOf>[0]> = {}) =>
    judge(evidenceOf({ entries: tooMany, approvals: inOneWindow, windowStarts, ...sample }));

  test('are found out where one approval is too many', () => {
    const { windows, overfull } = judged();
    expect(windows).toBe(1);
    expect(overfull).toEqual([
      { key: 'key', start: 0, approved: MAX_REQUESTS + 1, maximum: MAX_REQUESTS },
    ]);
  });

  test('are judged by the maximum that their key has', () => {
    const maxima = { key: MAX_REQUESTS + 1, other: 1 };
    expect(judged({ maxima }).overfull).toEqual([]);
    expect(judged({ maxima: { ...maxima, key: 2 } }).overfull[0]?.maximum).toBe(2);
  });

  test('may be full', () => {
    expect(judged({ entries: tooMany.slice(1) }).overfull).toEqual([]);
  });

  test('have room again after a release', () => {
    const release = entry({ kind: 'release', requestId: ids[0] });
    expect(judged({ entries: [...tooMany, release] }).overfull).toEqual([]);
  });

  test('name the fault that made Redis forget', () => {
    const faults = [fault({ name: 'pause' }), fault({ name: 'failover', loses: 'unreplicated' })];
    expect(judged({ faults }).overfull[0]?.forgotBy).toBe('failover');
  });
});

test('windows that Redis has moved are not judged by times', () => {
  const moved = [...windowStarts, { at: 30, start: 17 }];
  expect(judgeByTimes(evidenceOf({ entries: tooMany, windowStarts: moved })).windows).toBe(0);
});

test('an answer that came in the next window is not judged by times', () => {
  const late = tooMany.map((approval) => ({ ...approval, endedAt: WINDOW_MILLIS }));
  expect(judgeByTimes(evidenceOf({ entries: late, windowStarts })).windows).toBe(0);
});
