import { preferredWaitSeconds } from '../../../../src/http/intake/preferences.js';

test.each([
  ['wait=10', 10],
  ['wait=0', 0],
  ['WAIT = 10', 10],
  ['wait="10"', 10],
  ['wait=10; note=long', 10],
  ['respond-async, wait=10', 10],
  ['respond-async,wait=10,handling=lenient', 10],
  ['note="a, b", wait=10', 10],
  ['note="a \\" b", wait=10', 10],
  ['wait=10, wait=20', 10],
])('%s asks for %d s', (prefer, seconds) => {
  expect(preferredWaitSeconds(prefer)).toBe(seconds);
});

test.each([
  undefined,
  '',
  'wait',
  'wait=',
  'wait=-1',
  'wait=1.5',
  'wait=ten',
  'wait="10',
  'waits=10',
  'note="a, wait=10, b"',
  'handling=lenient',
  'wait=999999999',
  `wait=${'9'.repeat(30)}`,
  `${' '.repeat(250)}wait=10`,
  '"'.repeat(16_000),
])('%s asks for no usable wait', (prefer) => {
  expect(preferredWaitSeconds(prefer)).toBeUndefined();
});
