/**
 * Whether the caller of a request is still there, as far as a limiter has to know it.
 * An AbortSignal would say the same, but to take a listener off it is a quarter of what it costs to
 * answer a waiter.
 */
export class CallerPresence {
  #isDisconnected = false;
  /** Called when the caller disconnects. */
  onDisconnect: (() => void) | undefined;

  get isDisconnected(): boolean {
    return this.#isDisconnected;
  }

  disconnect(): void {
    if (this.#isDisconnected) return;
    this.#isDisconnected = true;
    this.onDisconnect?.();
  }
}
