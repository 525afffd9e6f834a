import { StoreUnavailableError } from '../limiter/errors.js';
import type { Limiter } from '../limiter/limiter.js';
import type { EventLoopWatch } from './event-loop-watch.js';
import type { Readiness } from './readiness.js';

interface ReadinessParts {
  readonly limiter: Pick<Limiter, 'ping'>;
  readonly eventLoop: Pick<EventLoopWatch, 'reason'>;
  /** Whether requests should come although the store can't be asked. */
  readonly readyDuringOutage: boolean;
}

/** Ready while this replica does not stop, its event loop keeps up, and its store answers. */
export class ServiceReadiness implements Readiness {
  #isDraining = false;
  #ping: Promise<boolean> | undefined;

  constructor(private readonly parts: ReadinessParts) {}

  /** From now on requests should go to other replicas: this one stops. */
  startDraining(): void {
    this.#isDraining = true;
  }

  async reasons(): Promise<readonly string[]> {
    if (this.#isDraining) return ['draining'];
    const { eventLoop, readyDuringOutage } = this.parts;
    const reasons: string[] = [];
    if (eventLoop.reason !== undefined) reasons.push(eventLoop.reason);
    if (!readyDuringOutage && !(await this.#storeAnswers())) reasons.push('store unavailable');
    return reasons;
  }

  /** Asks the store once at a time, for all callers together. */
  #storeAnswers(): Promise<boolean> {
    this.#ping ??= this.#pingStore().finally(() => {
      this.#ping = undefined;
    });
    return this.#ping;
  }

  async #pingStore(): Promise<boolean> {
    try {
      await this.parts.limiter.ping();
      return true;
    } catch (error) {
      if (error instanceof StoreUnavailableError) return false;
      throw error;
    }
  }
}
