import { nearestName } from '../../../src/common/nearest-name.js';

const NAMES = ['maxRequests', 'maxRequestsInQueue', 'canWait'];

test.each([
  ['maxRequest', 'maxRequests'],
  ['canwait', 'canWait'],
  ['max_requests', 'maxRequests'],
  ['MAX-REQUESTS-IN-QUEUES', 'maxRequestsInQueue'],
])('%s is most like %s', (given, nearest) => {
  expect(nearestName(given, NAMES)).toBe(nearest);
});

test('a name that differs in more letters than allowed is not taken', () => {
  expect(nearestName('canWat', NAMES, 1)).toBe('canWait');
  expect(nearestName('canWa', NAMES, 1)).toBeUndefined();
  expect(nearestName('canwait', NAMES, 0)).toBe('canWait');
});
