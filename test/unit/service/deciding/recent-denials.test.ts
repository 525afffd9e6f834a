import { type DeniedKey, RecentDenials } from '../../../../src/service/deciding/recent-denials.js';
import type { DenialReason } from '../../../../src/limiter/limiter.js';
import { forEachLimit, ownLimit } from '../../../../src/limiter/limits.js';
import type { KeyPolicy } from '../../../../src/rules/policy.js';
import { defaultPolicy } from '../../../../src/rules/rules.js';
import { DEFAULTS } from '../../../support/settings.js';

const MINUTE = 60_000;

let now: number;
let denials: RecentDenials;
beforeEach(() => {
  now = 1_000_000;
  denials = new RecentDenials(() => now);
});

const runOf = (key: string): DeniedKey | undefined => denials.all().find((one) => one.key === key);

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
