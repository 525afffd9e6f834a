/** Places with tickets, in the order of their tickets. Several checks of one request may have the same ticket. */
export class TicketOrder<Place extends { readonly ticket: number }> implements Iterable<Place> {
  readonly #inOrder: Place[] = [];

  get first(): Place | undefined {
    return this.#inOrder[0];
  }

  [Symbol.iterator](): Iterator<Place> {
    return this.#inOrder.values();
  }

  /** How many places are before one that is here. */
  countBefore(place: Place): number {
    return this.#inOrder.indexOf(place, this.#indexOf(place.ticket));
  }

  /** New tickets come in their order. A request that comes back has the ticket of before. */
  add(place: Place): void {
    const last = this.#inOrder.at(-1);
    if (!last || last.ticket <= place.ticket) this.#inOrder.push(place);
    else this.#inOrder.splice(this.#indexOf(place.ticket), 0, place);
  }

  /** Removes a place that is here. */
  remove(place: Place): void {
    this.#inOrder.splice(this.countBefore(place), 1);
  }

  /** The index of the first place whose ticket is not lower. */
  #indexOf(ticket: number): number {
    let [low, high] = [0, this.#inOrder.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#inOrder[middle]?.ticket ?? Infinity) < ticket) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
