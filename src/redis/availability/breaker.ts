import type { Clock } from '../../common/clock.js';
import { backoffMillis } from '../shared/backoff.js';

const FAILURES_TO_OPEN = 3;
const FIRST_PROBE_MILLIS = 50;

export interface BreakerParts {
  readonly clock: Clock;
  /** Asks the shard whether it accepts calls again. @param name a name in Redis that is stored on the shard */
  readonly probe: (name: string) => Promise<unknown>;
  readonly onOpen: (cause: unknown) => void;
  readonly onClose: () => void;
}

/**
 * Knows whether a shard of the store is down. While the shard is down, the breaker is open. Then the shard gets no
 * calls but the breaker's own probes:
 *
 *     closed ──calls fail in a row, or the shard is known to be down──▶ open ──a probe is answered──▶ closed
 */
export class Breaker {
  /** The amount of work that was sent to the shard and is not answered yet. */
  underWay = 0;
  #failures = 0;
  #isOpen = false;
  #probeName = '';
  #probes = 0;
  #isProbing = false;
  #isDisposed = false;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly parts: BreakerParts) {}

  get isOpen(): boolean {
    return this.#isOpen;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** @param name the name in Redis that the call was about */
  failed(name: string, cause: unknown): void {
    this.#failures += 1;
    if (this.#failures >= FAILURES_TO_OPEN) this.open(name, cause);
  }

  /**
   * The shard is known to be down, without a call that failed.
   * @param name a name in Redis that is stored on the shard
   */
  open(name: string, cause: unknown): void {
    if (this.#isDisposed || this.#isOpen) return;
    this.#isOpen = true;
    this.#probeName = name;
    this.#probes = 0;
    this.parts.onOpen(cause);
    this.#probeLater();
  }

  /** Probes now, because the shard may be up again. */
  probeNow(): void {
    if (this.#isOpen) void this.#probe();
  }

  /** Stops the probes. Calls that fail later, such as calls under way now, start no probe. */
  dispose(): void {
    this.#isDisposed = true;
    this.#cancelTimer?.();
    this.#isOpen = false;
  }

  #probeLater(): void {
    this.#probes += 1;
    this.#cancelTimer?.();
    this.#cancelTimer = this.parts.clock.after(
      backoffMillis(this.#probes, FIRST_PROBE_MILLIS),
      () => void this.#probe(),
    );
  }

  async #probe(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    const isBack = await this.parts.probe(this.#probeName).then(
      () => true,
      () => false,
    );
    this.#isProbing = false;
    if (!this.#isOpen) return;
    if (!isBack) {
      this.#probeLater();
      return;
    }
    this.#cancelTimer?.();
    this.#isOpen = false;
    this.#failures = 0;
    this.parts.onClose();
  }
}
