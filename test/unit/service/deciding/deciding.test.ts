import type { DenialReason } from '../../../../src/limiter/limiter.js';
import { defaultPolicy } from '../../../../src/rules/rules.js';
import { RecentDenials, type DeniedKey } from '../../../../src/service/deciding/recent-denials.js';
import { ownLimit, forEachLimit } from '../../../../src/limiter/limits.js';
import type { KeyPolicy } from '../../../../src/rules/policy.js';
import { DEFAULTS } from '../../../support/settings.js';
import { Slices } from '../../../../src/service/deciding/slices.js';

describe('recent denials', () => {
  const MINUTE = 60_000;

  let now: number;
  let denials: RecentDenials;
  beforeEach(() => {
    now = 1_000_000;
    denials = new RecentDenials(() => now);
  });

  const runOf = (key: string): DeniedKey | undefined =>
    denials.all().find((one) => one.key === key);

  function policyOf(...windows: [number, ...number[]]): KeyPolicy {
    const limits = forEachLimit(windows, (windowMillis) => ownLimit(windowMillis, 1));
    return { ...defaultPolicy(DEFAULTS), limits };
  }

  function deny(
    key: string,
    reason: DenialReason = 'limit_reached',
    windowMillis = 1000,
    caller?: string,
  ): void {
    const policy = policyOf(windowMillis);
    denials.record(key, reason, policy, caller);
  }

  test('a denial is remembered with its reason and its time', () => {
    deny('a');
    now += 5000;
    deny('a', 'queue_full');
    now += 700;

    expect(runOf('a')).toMatchObject({
      key: 'a',
      count: 2,
      byReason: { limit_reached: 1, queue_full: 1, turn_too_late: 0, wait_expired: 0 },
      lastReason: 'queue_full',
      sinceMillis: 5700,
      lastMillis: 700,
    });
    expect(denials.all()).toEqual([runOf('a')]);
  });

  test('the caller that was denied last is known', () => {
    deny('a', 'limit_reached', 1000, 'first');
    deny('a', 'limit_reached', 1000, 'second');
    expect(runOf('a')?.caller).toBe('second');
  });

  test('the limit that denied last is known, if the key has several', () => {
    const policy = policyOf(1000);
    denials.record('a', 'limit_reached', policy, undefined, 'hour');
    expect(runOf('a')?.lastLimit).toBe('hour');
    denials.record('a', 'paused', policy, undefined);
    expect(runOf('a')?.lastLimit).toBeUndefined();
  });

  test('denials are forgotten after a minute without one, and begin again with the next', () => {
    deny('a');
    now += MINUTE;
    expect(runOf('a')).toMatchObject({ count: 1, lastMillis: MINUTE });
    now += 1;
    expect([runOf('a'), denials.all()]).toEqual([undefined, []]);
    deny('a');
    expect(runOf('a')).toMatchObject({ count: 1, sinceMillis: 0 });
  });

  test.each([
    ['a longer window', policyOf(5 * MINUTE)],
    ['a longer further limit', policyOf(1000, 2000, 5 * MINUTE)],
  ])('denials of a key with %s are forgotten after a window of that', (_what, policy) => {
    denials.record('a', 'limit_reached', policy, undefined);
    now += 5 * MINUTE;
    expect(runOf('a')).toMatchObject({ count: 1 });
    now += 1;
    expect(runOf('a')).toBeUndefined();
  });

  test.each([2, 15, 300])('a steady rate is known after %i seconds', (seconds) => {
    for (let i = 0; i < seconds * 20; i += 1) {
      now += 50;
      deny('a');
    }
    const { perSecond } = runOf('a')!;
    expect(perSecond).toBeGreaterThan(18);
    expect(perSecond).toBeLessThan(22);
  });

  test('the rate falls by half in ten seconds without a denial', () => {
    for (let i = 0; i < 2000; i += 1) {
      now += 50;
      deny('a');
    }
    const before = runOf('a')!.perSecond;
    now += 10_000;
    expect(runOf('a')!.perSecond / before).toBeCloseTo(0.5, 1);
  });

  test('of many keys, the ones that were denied last are kept', () => {
    for (let i = 0; i < 10_000; i += 1) deny(`key-${i}`);
    expect(denials.all().length).toBeLessThanOrEqual(2000);
    expect(runOf('key-9999')).toBeDefined();
    expect(runOf('key-9000')).toBeDefined();
    expect(runOf('key-0')).toBeUndefined();
  });
});

/** Slices with ticks that the test ends, and a clock that calls move forward. */
function manualSlices(millisPerElement = 1 / 256) {
  const due: (() => void)[] = [];
  let now = 0;
  const slices = new Slices({ next: (callback) => void due.push(callback) }, () => now);
  let dealt: string[] = [];
  /** Begins a call with `elements` elements, which uses every slice that it gets. */
  const begin = async (name: string, elements: number, owner = name): Promise<void> => {
    const request = { owner };
    for (let left = elements; left > 0;) {
      const count = await slices.next(request, left);
      dealt.push(...Array<string>(count).fill(name));
      now += count * millisPerElement;
      left -= count;
    }
  };
  /** Ends the tick. @returns the call of each element that was handled in it */
  const endTick = async (): Promise<string[]> => {
    await new Promise((resolve) => setImmediate(resolve));
    for (const callback of due.splice(0)) callback();
    const names = dealt;
    dealt = [];
    return names;
  };
  return { begin, endTick, isIdle: () => due.length === 0 };
}

test.each([
  [1 / 256, 256],
  [1 / 16, 16],
  // The number of elements between two looks at the clock.
  [20, 4],
])('at %f ms for each element a tick handles %i, of any number of calls', async (millis, most) => {
  const { begin, endTick, isIdle } = manualSlices(millis);
  for (const name of ['a', 'b', 'c', 'd']) void begin(name, 200);

  const counts: number[] = [];
  while (!isIdle()) counts.push((await endTick()).length);
  expect(counts.reduce((sum, count) => sum + count)).toBe(800);
  // The first tick has one more slice for each call, since the calls begin together.
  expect(counts[0]).toBeLessThanOrEqual(most + 4);
  expect(Math.max(...counts.slice(1))).toBe(most);
});

test('a new call waits behind the calls that already wait', async () => {
  const { begin, endTick } = manualSlices(20);
  void begin('a', 12);
  void begin('b', 12);
  await endTick();
  void begin('c', 4);

  const first: (string | undefined)[] = [];
  for (let tick = 0; tick < 4; tick += 1) first.push((await endTick())[0]);
  expect(first).toEqual(['a', 'b', 'a', 'c']);
});

test('callers are served one after the other, however many requests one of them has', async () => {
  const { begin, endTick } = manualSlices(20);
  for (const name of ['a1', 'a2', 'a3']) void begin(name, 8, 'a');
  void begin('b', 8);

  const first: (string | undefined)[] = [];
  for (let tick = 0; tick < 7; tick += 1) first.push((await endTick())[0]);
  expect(first).toEqual(['a1', 'b', 'a3', 'b', 'a1', 'a2', 'a3']);
});
