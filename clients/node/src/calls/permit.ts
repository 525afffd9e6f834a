import { performance } from 'node:perf_hooks';

import { SluicePermitLostError } from '../errors.js';
import { onAbort } from './on-abort.js';
import { type Hold, keepRenewed, renewalMillis, renewBefore } from './renewals.js';

/** The permit of work that goes on. */
export class Permit {
  readonly #work = new AbortController();
  readonly #end = new AbortController();
  #endListening: (() => void) | undefined;

  /**
   * @param hold undefined if there is nothing to renew
   * @param callers also aborts the work
   */
  constructor(
    private readonly hold: Hold | undefined,
    private readonly callers: AbortSignal | undefined,
  ) {}

  /** Whether the work was told that the permit no longer counts. */
  get isLost(): boolean {
    return this.#work.signal.reason instanceof SluicePermitLostError;
  }

  /**
   * Holds the permit until `end`.
   * @param askedAt when the check was made
   * @returns the signal of the work
   * @throws SluicePermitLostError if it is lost already; the reason of the caller's signal once that is aborted
   */
  async begin(askedAt: number): Promise<AbortSignal> {
    const { hold, callers } = this;
    const { signal } = this.#work;
    if (callers) {
      callers.throwIfAborted();
      this.#endListening = onAbort(callers, () => {
        this.#work.abort(callers.reason);
      });
    }
    if (hold) void this.#keep(hold, await this.#heldSince(hold, askedAt));
    signal.throwIfAborted();
    return signal;
  }

  /** The signal of the work is not aborted: what the work has returned may still use it. */
  end(): void {
    this.#endListening?.();
    this.#end.abort();
  }

  /** When the hold began at the earliest. */
  async #heldSince(hold: Hold, askedAt: number): Promise<number> {
    const now = performance.now();
    if (now - askedAt < renewalMillis(hold)) return askedAt;
    // It has waited, and nothing says how long ago its turn came: the process may have been suspended since.
    return renewBefore(now + hold.holdMillis, hold, this.#work.signal);
  }

  async #keep(hold: Hold, heldSince: number): Promise<void> {
    const { signal } = this.#end;
    try {
      await keepRenewed(hold, heldSince, signal);
    } catch (error) {
      if (!signal.aborted) this.#work.abort(error);
    }
  }
}
