/**
 * The client of a request that may wait, as far as a limiter has to know it: whether it is still there.
 * An AbortSignal would say the same, but to take a listener off it is a quarter of what it costs to
 * answer a waiter.
 */
export class Client {
  #hasLeft = false;
  /** Called when the client leaves. */
  onLeave: (() => void) | undefined;

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.onLeave?.();
  }
}
