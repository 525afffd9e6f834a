import type { Limits } from '../../../src/limiter/limiter.js';

/** All limits that the rules of any replica have given so far. */
export class RulesGiven {
  readonly #units = new Set<string>();
  readonly #windows = new Set<number>();

  add({ windowMillis, maxRequests }: Limits): void {
    this.#units.add(unit(windowMillis, maxRequests));
    this.#windows.add(windowMillis);
  }

  /** The lengths of windows. */
  get windows(): readonly number[] {
    return [...this.#windows];
  }

  /** Whether any rules have this maximum for windows of this length. */
  hasUnit(windowMillis: number, maxRequests: number): boolean {
    return this.#units.has(unit(windowMillis, maxRequests));
  }
}

function unit(windowMillis: number, maxRequests: number): string {
  return `${windowMillis}:${maxRequests}`;
}
