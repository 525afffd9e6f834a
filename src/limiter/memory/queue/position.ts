/** As many positions are exact: those behind them count waiters that have left the list. */
const EXACT_POSITIONS = 1000;

/** A waiter in a list. */
interface Numbered {
  /** Grows with each waiter of the list. */
  readonly number: number;
}

/**
 * Returns the position of a waiter, as in `PlaceInQueue`.
 * @param list in the order of arrival
 */
export function positionIn<Waiter extends Numbered>(
  list: Iterable<Waiter>,
  wanted: Waiter,
): number {
  let position = 0;
  for (const waiter of list) {
    position += 1;
    if (waiter === wanted) break;
    if (position === EXACT_POSITIONS) return position + wanted.number - waiter.number;
  }
  return position;
}
