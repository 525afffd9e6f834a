import type { Clock } from '../common/clock.js';
import { StoreUnavailableError } from '../limiter/errors.js';
import type { Limiter, StoreCondition } from '../limiter/limiter.js';
import type { EventLoopWatch } from './event-loop-watch.js';

/** Whether this replica should get requests. */
export type Readiness = Pick<ServiceReadiness, 'assess'>;

/** In words for operators. */
export interface Assessment {
  /** Why requests should go elsewhere; empty if they should come. */
  readonly reasons: readonly string[];
  /** What is wrong but no reason, because it is the same on other replicas. */
  readonly remarks: readonly string[];
}

/** As long as the probes in `deploy` and `k8s` wait. A scrape that took longer would lose all metrics. */
const PATIENCE_MILLIS = 2000;

/** Whether this replica is ready, as a probe of `/readyz` sees it: not if the answer is late or an error. */
export function isReadySoon(readiness: Readiness, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(PATIENCE_MILLIS, () => resolve(false));
    const settle = (isReady: boolean): void => {
      cancel();
      resolve(isReady);
    };
    readiness.assess().then(
      ({ reasons }) => settle(reasons.length === 0),
      () => settle(false),
    );
  });
}

interface ReadinessParts {
  readonly limiter: Pick<Limiter, 'ping'>;
  readonly eventLoop: Pick<EventLoopWatch, 'reason'>;
  /** The policy by which the store may evict keys; undefined if it evicts none. */
  readonly evictionPolicy: () => string | undefined;
  /** Whether this replica is ready although the store is down. */
  readonly readyDuringOutage: boolean;
}

/** Ready while this replica serves on all of its ports, is not stopping, keeps up, and has a store that answers. */
export class ServiceReadiness {
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
    this.#ping ??= this.parts.limiter
      .ping()
      .catch((error: unknown): 'unavailable' => {
        if (error instanceof StoreUnavailableError) return 'unavailable';
        throw error;
      })
      .finally(() => {
        this.#ping = undefined;
      });
    return this.#ping;
  }
}
