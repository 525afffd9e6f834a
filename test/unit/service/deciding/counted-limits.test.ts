import type { Decision, Quota } from '../../../../src/limiter/limiter.js';
import { ownLimit } from '../../../../src/limiter/limits.js';
import type { QueueList } from '../../../../src/limiter/queue-order.js';
import { withCountedLimits } from '../../../../src/service/deciding/counted-limits.js';

const LEFT = { remaining: 1, resetMillis: 5 };
const OWN = { ...ownLimit(1000, 9), ...LEFT };
const DAY = { ...OWN, name: 'day' };
const SHARE = { ...OWN, name: 'share', lanes: ['batch', 'night'] };
const QUOTA: Quota = { limits: [OWN, SHARE, DAY] };

const laneOf = (name: string): QueueList => ({ kind: 'lane', name, headStartMillis: 0 });
const GROUP: QueueList = { kind: 'group', name: 'batch', weight: 1, maxRequests: undefined };

const denied = (quota: Quota): Decision => ({ outcome: 'denied', reason: 'limit_reached', quota });

test.each([laneOf('batch'), laneOf('night')])('a limit of lanes counts %j', (list) => {
  const decision = denied(QUOTA);
  expect(withCountedLimits(decision, list)).toBe(decision);
});

test.each([laneOf('interactive'), GROUP, undefined])(
  'a limit of other lanes is not in the quota of %j',
  (list) => {
    expect(withCountedLimits(denied(QUOTA), list)).toEqual(denied({ limits: [OWN, DAY] }));
  },
);

test.each<Decision>([
  { outcome: 'withdrawn' },
  { outcome: 'approved', requestId: 'id', quota: undefined },
])('%j is as it was', (decision) => {
  expect(withCountedLimits(decision, laneOf('interactive'))).toBe(decision);
});
