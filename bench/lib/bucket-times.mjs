// The exact times at which the approvals of a token bucket are due.

/**
 * What Redis has of a key whose bucket serves a queue.
 * @param {number} waiters have joined the queue
 * @returns `served`: how many of them are approved; `level` of the bucket at `at`, in ms since 1970 by Redis's clock
 */
export async function bucketIn(redis, key, waiters) {
  const name = `sluice:{${key}}`;
  const [[, own], [, waiting]] = await redis.client
    .multi()
    .hget(name, 'own')
    .hlen(`${name}:records`)
    .exec();
  const { level, time: micros } = JSON.parse(own);
  return { served: waiters - waiting, level, at: micros / 1000 };
}

/**
 * When the bucket has room for the waiter of a number, in ms since 1970 by Redis's clock. A bucket that is served too late
 * forgoes room, and all later waiters are due later. So the time follows from the last look at the bucket before this
 * waiter was served.
 * @param buckets from `bucketIn`, the earliest first; the waiter was not yet served at that time
 * @param {number} perSecond the pace, with a burst of 1
 * @param {number} number 1 is the first waiter
 */
export function dueAt(buckets, perSecond, number) {
  const { served, level, at } = buckets.findLast((bucket) => bucket.served < number);
  return at + ((level - 1 + number - served) * 1000) / perSecond;
}
