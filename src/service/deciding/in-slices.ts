import type { Slices, SliceTaker } from './slices.js';

/** How long a request works before it asks for its next slice. */
const SLICE_MILLIS = 0.25;

/**
 * Does `work` for each of many items, in slices between those of other costly requests: an item may be a key that is
 * matched for the first time.
 */
export async function inSlices<T>(
  items: Iterable<T>,
  slices: Pick<Slices, 'next'>,
  taker: SliceTaker,
  work: (item: T) => void,
): Promise<void> {
  let end = -Infinity;
  for (const item of items) {
    if (performance.now() >= end) {
      await slices.next(taker, 1);
      end = performance.now() + SLICE_MILLIS;
    }
    work(item);
  }
}
