import { quotaHeaders, quotaOf } from '../../../src/client/calls/quota.js';

const SEVERAL = [
  { name: 'default', limit: 10, remaining: 9, resetSeconds: 1, windowSeconds: 1 },
  { name: 'day', limit: 20_000, remaining: 0, resetSeconds: 86_400, windowSeconds: 86_400 },
];

const quotaIn = (policy: unknown, left: unknown) =>
  quotaOf({ headers: { 'ratelimit-policy': policy, ratelimit: left } });

test('an answer has the quota of each limit', () => {
  expect(
    quotaIn('"default";q=10;w=1, "day";q=20000;w=86400', '"default";r=9;t=1, "day";r=0;t=86400'),
  ).toEqual(SEVERAL);
});

test('a window may have no whole number of seconds, and a name any sign', () => {
  expect(quotaIn('"a \\"b\\", \\\\c";q=2', '"a \\"b\\", \\\\c";r=1;t=3')).toEqual([
    { name: 'a "b", \\c', limit: 2, remaining: 1, resetSeconds: 3 },
  ]);
});

test.each([
  ['without the headers', undefined, undefined],
  ['without what is left', '"default";q=10;w=1', undefined],
  ['of another form', '100;w=1', 'limit=100, remaining=50'],
])('an answer %s has no quota', (_, policy, left) => {
  expect(quotaIn(policy, left)).toBeUndefined();
});

test.each([[SEVERAL], [[{ name: 'a "b", \\c', limit: 2, remaining: 1, resetSeconds: 3 }]]])(
  'the headers of a quota are read as it was',
  (quota) => {
    const { 'RateLimit-Policy': policy, RateLimit: left } = quotaHeaders(quota);

    expect(quotaIn(policy, left)).toEqual(quota);
  },
);
