import type { QueueOrder } from '../../../../src/limiter/queue-order.js';
import { type AskedCheck, inItsList } from '../../../../src/service/deciding/lists-of-checks.js';

const CHECK: AskedCheck = { key: 'a', canWait: true };
const LANES: QueueOrder = {
  kind: 'lanes',
  lanes: [
    { name: 'interactive', headStartMillis: 30_000 },
    { name: 'batch', headStartMillis: 0 },
  ],
};
const FAIR: QueueOrder = {
  kind: 'fair',
  maxRequestsInQueuePerGroup: 100,
  weights: new Map([['gold', 4]]),
};

test('a check of a key with one list is passed on as it is', () => {
  expect(inItsList(CHECK, { queueOrder: undefined })).toBe(CHECK);
});

test.each([
  [undefined, 'batch', 0],
  ['batch', 'batch', 0],
  ['interactive', 'interactive', 30_000],
])('the lane %j is %s', (lane, name, headStartMillis) => {
  expect(inItsList({ ...CHECK, lane }, { queueOrder: LANES })).toEqual({
    ...CHECK,
    list: { kind: 'lane', name, headStartMillis },
  });
});

test.each([
  [undefined, '', 1],
  ['gold', 'gold', 4],
  ['tenant-7', 'tenant-7', 1],
])('the group %j is %j, with the weight %i', (group, name, weight) => {
  expect(inItsList({ ...CHECK, group }, { queueOrder: FAIR })).toEqual({
    ...CHECK,
    list: { kind: 'group', name, weight, maxRequests: 100 },
  });
});

test('the name of the lane or the group is not passed on', () => {
  const passedOn = [
    inItsList({ ...CHECK, lane: 'batch' }, { queueOrder: LANES }),
    inItsList({ ...CHECK, group: 'gold' }, { queueOrder: FAIR }),
  ];
  expect(passedOn.map((check) => Object.keys(check))).toEqual([
    ['key', 'canWait', 'list'],
    ['key', 'canWait', 'list'],
  ]);
});

test.each<[named: object, order: QueueOrder | undefined, error: string]>([
  [{ lane: 'batch' }, undefined, 'lane must be left out: the key has no lanes'],
  [{ lane: 'batch' }, FAIR, 'lane must be left out: the key has no lanes'],
  [{ lane: 'bach' }, LANES, 'lane must be one of interactive, batch'],
  [{ lane: '' }, LANES, 'lane must be one of interactive, batch'],
  [{ group: 'gold' }, undefined, 'group must be left out: the key has no fair groups'],
  [{ group: 'gold' }, LANES, 'group must be left out: the key has no fair groups'],
  [{ lane: 'batch', group: 'gold' }, LANES, 'group must be left out: the key has no fair groups'],
])('%j of a key with the order %j is rejected', (named, queueOrder, error) => {
  expect(() => inItsList({ ...CHECK, ...named }, { queueOrder })).toThrow(error);
});
