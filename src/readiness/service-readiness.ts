import { StoreUnavailableError } from '../limiter/errors.js';
import type { Limiter, StoreCondition } from '../limiter/limiter.js';
import type { EventLoopWatch } from './event-loop-watch.js';
import type { Assessment, Readiness } from './readiness.js';

interface ReadinessParts {
  readonly limiter: Pick<Limiter, 'ping'>;
  readonly eventLoop: Pick<EventLoopWatch, 'reason'>;
  /** The policy by which the store may evict keys; undefined if it evicts none. */
  readonly evictionPolicy: () => string | undefined;
  /** Whether this replica is ready although the store is down. */
  readonly readyDuringOutage: boolean;
}

/** Ready while this replica serves on all of its ports, is not stopping, keeps up, and has a store that answers. */
export class ServiceReadiness implements Readiness {
  /** Overrides all other reasons. */
  #phase: 'starting' | 'draining' | undefined = 'starting';
  #ping: Promise<StoreCondition | 'unavailable'> | undefined;

  constructor(private readonly parts: ReadinessParts) {}

  /** Ready from now on: all ports listen. */
  startServing(): void {
    this.#phase = undefined;
  }

  /** Not ready from now on: this replica stops. */
  startDraining(): void {
    this.#phase = 'draining';
  }

  async assess(): Promise<Assessment> {
    if (this.#phase) return { reasons: [this.#phase], remarks: [] };
    const { eventLoop, evictionPolicy, readyDuringOutage } = this.parts;
    const reasons: string[] = [];
    const remarks: string[] = [];
    if (eventLoop.reason !== undefined) reasons.push(eventLoop.reason);
    if (!readyDuringOutage) {
      const store = await this.#askStore();
      if (store === 'unavailable') reasons.push('store unavailable');
      if (store === 'full') remarks.push('store full: checks of new keys fail');
    }
    const policy = evictionPolicy();
    if (policy !== undefined) {
      remarks.push(`store may evict keys by ${policy}, and limits with them: set noeviction`);
    }
    return { reasons, remarks };
  }

  /** Asks the store once at a time, for all callers together. */
  #askStore(): Promise<StoreCondition | 'unavailable'> {
    this.#ping ??= this.#pingStore().finally(() => {
      this.#ping = undefined;
    });
    return this.#ping;
  }

  async #pingStore(): Promise<StoreCondition | 'unavailable'> {
    try {
      return await this.parts.limiter.ping();
    } catch (error) {
      if (error instanceof StoreUnavailableError) return 'unavailable';
      throw error;
    }
  }
}
