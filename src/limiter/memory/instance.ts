import type { CheckRequest, InstanceState, Limits } from '../limiter.js';
import { Window } from './window.js';

export type InstanceDecision = 'approved' | 'denied' | 'queue_full' | 'waiting';

/**
 * The state of one key, and every rule of the limiter, without clock, timers or promises. The scripts in
 * `lua/` have the same rules, operation by operation. `onGrant` gets each grant, in order.
 */
export class Instance {
  readonly #window: Window;
  readonly #requests = new Set<string>();
  readonly #queue = new Set<string>();
  #denied = 0;
  #expires: number;
  #maxRequests: number;
  #maxRequestsInQueue: number;

  constructor(
    readonly key: string,
    now: number,
    limits: Limits,
    private readonly onGrant: (requestId: string) => void,
  ) {
    this.#window = new Window(now, limits.windowMillis);
    this.#expires = this.#window.idleAt;
    this.#maxRequests = limits.maxRequests;
    this.#maxRequestsInQueue = limits.maxRequestsInQueue;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  get windowEnd(): number {
    return this.#window.end;
  }

  isIdle(now: number): boolean {
    return now >= this.#expires && this.#queue.size === 0;
  }

  check(now: number, requestId: string, request: CheckRequest): InstanceDecision {
    this.#roll(now);
    this.#expires = this.#window.idleAt;
    this.#maxRequests = request.maxRequests ?? this.#maxRequests;
    this.#maxRequestsInQueue = request.maxRequestsInQueue ?? this.#maxRequestsInQueue;
    this.#serveQueue();
    if (this.#requests.size < this.#maxRequests) {
      this.#requests.add(requestId);
      return 'approved';
    }
    if (!request.canWait) {
      this.#denied += 1;
      return 'denied';
    }
    if (this.#queue.size >= this.#maxRequestsInQueue) return 'queue_full';
    this.#queue.add(requestId);
    return 'waiting';
  }

  settle(now: number): void {
    this.#roll(now);
    this.#serveQueue();
  }

  release(now: number, requestId: string): boolean {
    this.#roll(now);
    const released = this.#requests.delete(requestId);
    this.#serveQueue();
    return released;
  }

  withdraw(now: number, requestId: string): void {
    this.#roll(now);
    if (!this.#queue.delete(requestId)) this.#requests.delete(requestId);
    this.#serveQueue();
  }

  inspect(now: number): InstanceState {
    const windowHasEnded = now >= this.#window.end;
    return {
      key: this.key,
      limits: {
        windowMillis: this.#window.millis,
        maxRequests: this.#maxRequests,
        maxRequestsInQueue: this.#maxRequestsInQueue,
      },
      approved: windowHasEnded ? 0 : this.#requests.size,
      denied: windowHasEnded ? 0 : this.#denied,
      waiting: this.#queue.size,
    };
  }

  #roll(now: number): void {
    if (!this.#window.rollTo(now)) return;
    this.#requests.clear();
    this.#denied = 0;
    // A window in which somebody waits counts as one with a check.
    if (this.#queue.size > 0) this.#expires = this.#window.idleAt;
  }

  /** Everything that may have made room calls this. So while somebody waits, the window is full. */
  #serveQueue(): void {
    for (const requestId of this.#queue) {
      if (this.#requests.size >= this.#maxRequests) return;
      this.#queue.delete(requestId);
      this.#requests.add(requestId);
      this.onGrant(requestId);
    }
  }
}
