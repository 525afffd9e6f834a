import type { InstanceDetail } from '../../limiter.js';
import type { WaitingQueue } from './waiting-queue.js';

/**
 * Returns who waits. All places are those of this process.
 * @param now in milliseconds of the clock by which they came
 * @param most of the waiting requests, those whose turns come first
 */
export function placesIn(
  queue: WaitingQueue,
  now: number,
  most: number,
): Pick<InstanceDetail, 'queue' | 'replicas'> {
  const places = queue.size;
  return {
    queue: queue
      .first(most)
      .map(({ arrival }) => ({ replica: undefined, waitedMillis: now - arrival })),
    replicas: places === 0 ? [] : [{ replica: undefined, places, leaseMillis: undefined }],
  };
}
