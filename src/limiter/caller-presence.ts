/**
 * Whether the caller of a request is still there, as far as a limiter has to know it.
 * An AbortSignal would say the same, but to take a listener off it is a quarter of what it costs to
 * answer a waiter.
 */
export class CallerPresence {
  #isGone = false;
  /** Called when the caller disconnects. */
  onDisconnect: (() => void) | undefined;

  get isGone(): boolean {
    return this.#isGone;
  }

  disconnect(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.onDisconnect?.();
  }
}
