/**
 * Whether the caller of a request is still connected. An AbortSignal would say the same, but the removal of
 * its listener costs a quarter of the answer to a waiter.
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
