import type { Response } from 'express';

import { LatelyRefused } from '../../../../src/http/deciding/lately-refused.js';
import type { Decision } from '../../../../src/limiter/limiter.js';
import type { KeyPolicy } from '../../../../src/rules/policy.js';

const MINUTE = 60_000;
const QUOTA = { maxRequests: 1, remaining: 0, resetMillis: 1 };

let now: number;
let lately: LatelyRefused;
let answered: string[];
beforeEach(() => {
  now = 1_000_000;
  lately = new LatelyRefused(() => now);
  answered = [];
});

function decide(key: string, decision: Decision, windowMillis = 1000, caller?: string): void {
  const answer = lately.noting<undefined, Response>((_response, of) => {
    answered.push(of);
  });
  const response = { locals: { caller } } as unknown as Response;
  const policy = { isShadow: false, limits: { windowMillis } } as KeyPolicy;
  void answer(response, key, decision, policy, undefined);
}

function refuse(key: string, reason: 'limit_reached' | 'queue_full' = 'limit_reached'): void {
  decide(key, { outcome: 'denied', reason, quota: QUOTA });
}

test('a refusal is answered, and remembered with its reason and since when', () => {
  refuse('a');
  now += 5000;
  refuse('a', 'queue_full');
  now += 700;

  expect(answered).toEqual(['a', 'a']);
  expect(lately.of('a')).toMatchObject({
    key: 'a',
    count: 2,
    byReason: { limit_reached: 1, queue_full: 1, turn_too_late: 0, wait_expired: 0 },
    lastReason: 'queue_full',
    sinceMillis: 5700,
    lastMillis: 700,
  });
  expect(lately.all()).toEqual([lately.of('a')]);
});

test('an approval, or a client that left, is answered and not remembered', () => {
  decide('a', { outcome: 'approved', requestId: 'id' });
  decide('a', { outcome: 'withdrawn' });
  expect([answered, lately.all()]).toEqual([['a', 'a'], []]);
});

test('the caller that was refused last is known', () => {
  const denied = { outcome: 'denied', reason: 'limit_reached', quota: QUOTA } as const;
  decide('a', denied, 1000, 'first');
  decide('a', denied, 1000, 'second');
  expect(lately.of('a')?.caller).toBe('second');
});

test('the refusals are over after a minute without one, and begin anew with the next', () => {
  refuse('a');
  now += MINUTE;
  expect(lately.of('a')).toMatchObject({ count: 1, lastMillis: MINUTE });
  now += 1;
  expect([lately.of('a'), lately.all()]).toEqual([undefined, []]);
  refuse('a');
  expect(lately.of('a')).toMatchObject({ count: 1, sinceMillis: 0 });
});

test('of a key with a longer window they are over after a window', () => {
  decide('a', { outcome: 'denied', reason: 'limit_reached', quota: QUOTA }, 10 * MINUTE);
  now += 10 * MINUTE;
  expect(lately.of('a')).toMatchObject({ count: 1 });
  now += 1;
  expect(lately.of('a')).toBeUndefined();
});

test.each([2, 15, 300])('a steady rate is known after %i seconds', (seconds) => {
  for (let i = 0; i < seconds * 20; i += 1) {
    now += 50;
    refuse('a');
  }
  const { perSecond } = lately.of('a')!;
  expect(perSecond).toBeGreaterThan(18);
  expect(perSecond).toBeLessThan(22);
});

test('the rate falls by half in ten seconds without a refusal', () => {
  for (let i = 0; i < 2000; i += 1) {
    now += 50;
    refuse('a');
  }
  const before = lately.of('a')!.perSecond;
  now += 10_000;
  expect(lately.of('a')!.perSecond / before).toBeCloseTo(0.5, 1);
});

test('of any number of keys those are kept that were refused last', () => {
  for (let i = 0; i < 10_000; i += 1) refuse(`key-${i}`);
  expect(lately.all().length).toBeLessThanOrEqual(2000);
  expect(lately.of('key-9999')).toBeDefined();
  expect(lately.of('key-9000')).toBeDefined();
  expect(lately.of('key-0')).toBeUndefined();
});
