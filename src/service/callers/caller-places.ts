import type { CheckRequest } from '../../limiter/limiter.js';
import { RequestPlaces, type TakenPlace } from '../../limiter/request-places.js';
import type { Caller } from './caller.js';

/** Counts the places that each caller's waiters take on this replica. The counts outlive a change of the tokens. */
export class CallerPlaces {
  readonly #ofCallers = new Map<string, RequestPlaces>();

  /**
   * @param maxWaiters the places of all callers together
   * @param maxPerCaller the most places of a caller without a share of its own; half of all by default
   */
  constructor(
    private readonly maxWaiters: number,
    private readonly maxPerCaller = Math.ceil(maxWaiters / 2),
  ) {}

  /** @returns undefined if the caller has no place left */
  take(caller: Caller, request: Pick<CheckRequest, 'key' | 'requestId'>): TakenPlace | undefined {
    const { name } = caller;
    const places = this.#ofCallers.get(name) ?? new RequestPlaces();
    const place = places.take(this.#mostOf(caller), request);
    if (!place) return undefined;
    this.#ofCallers.set(name, places);
    return {
      giveBack: () => {
        place.giveBack();
        if (places.taken === 0 && this.#ofCallers.get(name) === places)
          this.#ofCallers.delete(name);
      },
    };
  }

  /** A share is never less than one place. */
  #mostOf({ waitingShare }: Caller): number {
    if (waitingShare === undefined) return this.maxPerCaller;
    return Math.max(1, Math.round(waitingShare * this.maxWaiters));
  }
}
