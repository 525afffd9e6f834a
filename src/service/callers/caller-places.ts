import type { Caller } from './caller.js';

/** Counts the places that each caller's waiters take on this replica. The counts outlive a change of the tokens. */
export class CallerPlaces {
  readonly #taken = new Map<string, number>();

  /**
   * @param maxWaiters the places of all callers together
   * @param maxPerCaller the most places of a caller without a share of its own; half of all by default
   */
  constructor(
    private readonly maxWaiters: number,
    private readonly maxPerCaller = Math.ceil(maxWaiters / 2),
  ) {}

  /** @returns false if the caller has no place left */
  take(caller: Caller): boolean {
    const taken = this.#taken.get(caller.name) ?? 0;
    if (taken >= this.#mostOf(caller)) return false;
    this.#taken.set(caller.name, taken + 1);
    return true;
  }

  giveBack({ name }: Caller): void {
    const left = (this.#taken.get(name) ?? 0) - 1;
    if (left > 0) this.#taken.set(name, left);
    else this.#taken.delete(name);
  }

  /** A share is never less than one place. */
  #mostOf({ waitingShare }: Caller): number {
    if (waitingShare === undefined) return this.maxPerCaller;
    return Math.max(1, Math.round(waitingShare * this.maxWaiters));
  }
}
