import { ownLimit } from '../../../../src/limiter/limits.js';
import { periodAt } from '../declared/short-calendars.js';
import { FURTHER, MAX_REQUESTS, WINDOW_MILLIS } from '../limits.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';
import { describeOverfull, judgeByRedis, judgeFurtherByRedis } from './windows.js';

const ids = Array.from({ length: MAX_REQUESTS + 1 }, (_, i) => `id-${i}`);
const tooMany = ids.map((requestId, i) => entry({ requestId, sentAt: 10 + i, endedAt: 20 + i }));
const inOneWindow = ids.map((id) => observed(id, 15));

describe('windows', () => {
  const judged = (sample: Partial<Parameters<typeof evidenceOf>[0]> = {}) =>
    judgeByRedis(evidenceOf({ entries: tooMany, approvals: inOneWindow, ...sample }));

  test('are found out where one approval is too many', () => {
    const { windows, overfull } = judged();
    expect(windows).toBe(1);
    expect(overfull).toEqual([
      { key: 'key', start: 0, approved: MAX_REQUESTS + 1, maximum: MAX_REQUESTS },
    ]);
  });

  test('are judged by the maximum that their key has', () => {
    const key = ownLimit(WINDOW_MILLIS, MAX_REQUESTS + 1);
    const limits = { key, other: { ...key, maximum: 1 } };
    expect(judged({ limits }).overfull).toEqual([]);
    const lower = { ...limits, key: { ...key, maximum: 2 } };
    expect(judged({ limits: lower }).overfull[0]?.maximum).toBe(2);
  });

  test('may be full', () => {
    expect(judged({ entries: tooMany.slice(1) }).overfull).toEqual([]);
  });

  test('have room again after a release', () => {
    const release = entry({ kind: 'release', requestId: ids[0] });
    expect(judged({ entries: [...tooMany, release] }).overfull).toEqual([]);
  });

  test('are not judged while their key has another algorithm', () => {
    const limits = [ownLimit(WINDOW_MILLIS, MAX_REQUESTS, { name: 'sliding_window', steps: 10 })];
    const approvals = ids.map((id) => observed(id, 15, { limits }));
    expect(judged({ approvals })).toEqual({ windows: 0, periods: 0, overfull: [] });
  });

  test('of a calendar are full until its day ends', () => {
    const calendar = { unit: 'day', timeZone: 'Europe/Berlin' } as const;
    const { start, end } = periodAt(calendar, 1_000_000);
    const limits = [
      ownLimit(end - start, MAX_REQUESTS, { name: 'fixed_window', calendar }),
    ] as const;
    const judgedDays = (...starts: number[]) =>
      judged({
        approvals: ids.map((id, i) => observed(id, 15, { limits, start: starts[i] ?? start })),
      });
    expect(judgedDays()).toMatchObject({ windows: 1, periods: 1, overfull: [{ start }] });
    expect(judgedDays(end)).toEqual({ windows: 2, periods: 2, overfull: [] });
  });

  test('name the fault that made Redis forget', () => {
    const faults = [fault({ name: 'pause' }), fault({ name: 'failover', loses: 'unreplicated' })];
    expect(judged({ faults }).overfull[0]?.forgotBy).toBe('failover');
  });
});

describe('windows of further limits', () => {
  const own = ownLimit(WINDOW_MILLIS, 20);
  const [tokens, starts] = FURTHER.map((kind, i) => ({ ...own, ...kind, maximum: [4, 2][i]! }));
  const limits = { key: own, 'key/tokens': tokens!, 'key/starts': starts! };
  const observedLimits = { limits: Object.values(limits), starts: { tokens: 100, starts: 0 } };
  const two = ['a', 'b'].map((requestId) =>
    entry({ requestId, hits: 2, sentAt: 150, endedAt: 160 }),
  );
  const approvals = ['a', 'b', 'c'].map((id) => observed(id, 155, observedLimits));
  const judged = (...others: Parameters<typeof entry>[0][]): string[] => {
    const entries = [
      ...two,
      ...others.map((fields) => entry({ sentAt: 150, endedAt: 160, ...fields })),
    ];
    return judgeFurtherByRedis(evidenceOf({ entries, approvals, limits })).overfull.map(
      describeOverfull,
    );
  };
  const ofTokens = 'key: 5 approved in the window of tokens from 100, and not 4';
  const ofStarts = 'key: 3 approved in the window of starts from 0, and not 2';

  test('may be full', () => {
    expect(judged()).toEqual([]);
  });

  test('count hits or requests', () => {
    expect(judged({ requestId: 'c' })).toEqual([ofTokens, ofStarts]);
  });

  test('of a calendar may forget what a limit of another kind has forgotten', () => {
    const calendar = { unit: 'week', timeZone: 'UTC' } as const;
    const algorithm = { name: 'fixed_window', calendar } as const;
    const ofCalendar = { ...limits, 'key/tokens': { ...tokens!, algorithm } };
    const overfull = (countsSince: number): string[] => {
      const inForce = Object.values(ofCalendar);
      const { starts } = observedLimits;
      const given = [0, 0, countsSince].map((since, i) =>
        observed('abc'.charAt(i), 155, { limits: inForce, starts, countsSince: since }),
      );
      const entries = [...two, entry({ requestId: 'c', sentAt: 150, endedAt: 160 })];
      const evidence = evidenceOf({ entries, approvals: given, limits: ofCalendar });
      return judgeFurtherByRedis(evidence).overfull.map(describeOverfull);
    };
    expect(overfull(0)).toEqual([ofTokens, ofStarts]);
    expect(overfull(155)).toEqual([ofStarts]);
  });

  test('have room after a release, unless they keep what is released', () => {
    expect(judged({ requestId: 'c' }, { kind: 'release', requestId: 'b' })).toEqual([ofStarts]);
  });

  test('do not count hits that were corrected', () => {
    const correction = { kind: 'amend', requestId: 'b', hits: 1 } as const;
    expect(judged({ requestId: 'c' }, correction)).toEqual([ofStarts]);
  });

  test('count a hold that lasts until they end, from before them as well', () => {
    const held = (holdMillis: number) =>
      judged({ requestId: 'd', sentAt: 10, endedAt: 20, holdMillis });
    expect(held(989)).toEqual([]);
    expect(held(990)).toEqual([ofTokens]);
  });
});
