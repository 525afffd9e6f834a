import type { Turns, TurnTaker } from './turns.js';

/** How long a request goes on before it asks for its turn again. */
const SLICE_MILLIS = 0.25;

/**
 * Does `work` for each of many items in turns with other costly requests: an item may be a key that is matched for the
 * first time.
 */
export async function inSlices<T>(
  items: Iterable<T>,
  turns: Pick<Turns, 'next'>,
  taker: TurnTaker,
  work: (item: T) => void,
): Promise<void> {
  let end = -Infinity;
  for (const item of items) {
    if (performance.now() >= end) {
      await turns.next(taker, 1);
      end = performance.now() + SLICE_MILLIS;
    }
    work(item);
  }
}
