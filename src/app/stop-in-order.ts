import { setTimeout as delay } from 'node:timers/promises';

import { pause } from '../common/deadline.js';
import { withEach, inOrder } from '../common/steps.js';
import type { Ports } from '../http/server/ports.js';
import type { Limiter } from '../limiter/limiter.js';

/** The part of the delay in which idle connections are ended. */
const IDLE_ENDING_SHARE = 0.2;
const WAITING_POLL_MILLIS = 20;
/** The longest time for the last answers to reach their clients when the replica stops. */
const LINGER_MILLIS = 1000;

/**
 * Continues to serve, so that load balancers see that this replica is not ready, and answers ask clients to use
 * another. The connections that stay idle are ended one by one before the delay is over: in this order the fewest are
 * in use when they end.
 * @param hurry ends the delay at once when it is aborted
 */
export async function serveUntilSeen(
  ports: Ports,
  delayMillis: number,
  hurry: AbortSignal | undefined,
): Promise<void> {
  // Even a pause of 0 ms could accept a connection.
  if (delayMillis === 0) return;
  const endingMillis = delayMillis * IDLE_ENDING_SHARE;
  await pause(delayMillis - endingMillis, hurry);
  await Promise.all([pause(endingMillis, hurry), ports.endIdle(endingMillis, hurry)]);
}

/**
 * Stops accepting, hands kept places over, answers the requests in flight, gives waiting requests up to `graceMillis`,
 * fails the rest and closes the limiter. A step that fails keeps none of the others from running.
 * @param hurry ends the grace at once when it is aborted
 * @throws AggregateError of what the steps have thrown
 */
export async function stopInOrder(
  ports: Ports,
  limiter: Limiter,
  graceMillis: number,
  hurry: AbortSignal | undefined,
): Promise<void> {
  const stopped = withEach([ports], (each) => each.stopAccepting());
  // If that fails, nothing tells when the last connection ends.
  const everyoneGone = stopped.catch(() => new Promise<never>(() => undefined));
  const linger = () =>
    Promise.race([everyoneGone, delay(LINGER_MILLIS, undefined, { ref: false })]);
  await inOrder([
    () => limiter.handOver(),
    () => Promise.race([everyoneGone, nobodyWaiting(limiter, graceMillis, hurry)]),
    // Requests in flight need a moment. A silent connection does not get the whole grace.
    () => (limiter.waiting() === 0 ? linger() : undefined),
    // A request that arrives now would be answered 503, and only waiters are.
    () => ports.endUnowed(),
    () => limiter.close(),
    linger,
    () => ports.cutConnections(),
    () => stopped,
  ]);
}

/** Resolves when no request waits for its turn, when the grace is over, or at once in a hurry. */
async function nobodyWaiting(
  limiter: Limiter,
  graceMillis: number,
  hurry: AbortSignal | undefined,
): Promise<void> {
  const graceEndsAt = performance.now() + graceMillis;
  while (limiter.waiting() > 0 && performance.now() < graceEndsAt && !hurry?.aborted) {
    await delay(WAITING_POLL_MILLIS);
  }
}
