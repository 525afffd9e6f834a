import { debugDetailBody, instanceDetail } from '../../../src/api/debug-body.js';
import type { InstanceDetail } from '../../../src/limiter/limiter.js';
import { DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import { type LimitState, ownLimit } from '../../../src/limiter/limits.js';

const OWN: LimitState = {
  ...ownLimit(60_000, 500, DEFAULT_ALGORITHM),
  used: 500,
  millisToWindowEnd: 1000,
};

const STATE: InstanceDetail = {
  ...{ key: 'llm', limits: [OWN], maxRequestsInQueue: 400, held: 0, denied: 0 },
  ...{ waiting: 0, pausedMillis: 0, isRecovering: false, queue: [], replicas: [], names: [] },
  overridden: { maxRequests: false, maxRequestsInQueue: false, windowMillis: false },
};

/** The body, which its schema has to allow. */
function bodyOf(state: Partial<InstanceDetail>) {
  const body = debugDetailBody({ ...STATE, ...state }, []);
  instanceDetail.parse(body);
  return body;
}

test('a queue names its lists by their lanes and groups, and the one from before them by neither', () => {
  const lists = [
    { kind: 'lane', name: 'batch', waiting: 30, oldestMillis: 4000 },
    { kind: 'group', name: 'tenant 7', waiting: 20, oldestMillis: 3000 },
    { kind: 'group', name: '', waiting: 10, oldestMillis: 2000 },
    { kind: 'fifo', name: '', waiting: 1, oldestMillis: 1000 },
  ] as const;

  expect(bodyOf({ lists, listCount: 4 }).Queue).toEqual({
    NumLists: 4,
    Lists: [
      { Lane: 'batch', NumWaiting: 30, OldestMillis: 4000 },
      { Group: 'tenant 7', NumWaiting: 20, OldestMillis: 3000 },
      { Group: '', NumWaiting: 10, OldestMillis: 2000 },
      { NumWaiting: 1, OldestMillis: 1000 },
    ],
  });
});
