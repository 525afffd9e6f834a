interface Bucket {
  readonly served: number;
  readonly level: number;
  readonly at: number;
}

interface BucketTimes {
  readonly dueAt: (buckets: readonly Bucket[], perSecond: number, number: number) => number;
}

const path = '../../../bench/lib/bucket-times.mjs';
const { dueAt } = (await import(path)) as BucketTimes;

const FULL = { served: 3, level: 1, at: 5000 };

test('the next waiter of a full bucket is due a pace later, the one after it two', () => {
  expect(dueAt([FULL], 100, 4)).toBe(5010);
  expect(dueAt([FULL], 100, 5)).toBe(5020);
});

test('what a bucket has drained beyond the last approval brings the next one forward', () => {
  expect(dueAt([{ ...FULL, level: 0.25 }], 100, 4)).toBe(5002.5);
});

test('a waiter is due by the last look at the bucket before it was served', () => {
  const later = { served: 8, level: 1, at: 5100 };

  expect(dueAt([FULL, later], 100, 8)).toBe(5050);
  expect(dueAt([FULL, later], 100, 9)).toBe(5110);
});
