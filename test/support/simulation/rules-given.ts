import type { DeclaredLimits } from '../limits.js';
import { haveCalendar, threeWindows } from './calendars.js';

/** All limits that the rules of any replica, or requests, have given so far. */
export class RulesGiven {
  readonly #units = new Set<string>();
  readonly #windows = new Set<number>();
  readonly #windowsOfRequests = new Set<number>();
  readonly #furtherWindows = new Set<number>();
  readonly #threeWindows = new Map<number, number>();
  /** Whether any limit has had a calendar. */
  hasCalendars = false;

  add(limits: DeclaredLimits): void {
    const { windowMillis, maxRequests, algorithm, further = [] } = limits;
    this.#units.add(unit(windowMillis, maxRequests));
    this.#windows.add(windowMillis);
    this.#addThree(windowMillis, threeWindows(algorithm, windowMillis));
    this.hasCalendars ||= haveCalendar(limits);
    for (const limit of further) this.#furtherWindows.add(limit.windowMillis);
  }

  /** A request has asked for windows of this length. */
  addWindowOfRequest(windowMillis: number): void {
    this.#windowsOfRequests.add(windowMillis);
    this.#addThree(windowMillis, 3 * windowMillis);
  }

  #addThree(windowMillis: number, three: number): void {
    this.#threeWindows.set(
      windowMillis,
      Math.min(three, this.#threeWindows.get(windowMillis) ?? three),
    );
  }

  /** The shortest time that three windows in a row of the own limit take, by their length by rules. */
  get threeWindows(): ReadonlyMap<number, number> {
    return this.#threeWindows;
  }

  /** The lengths of windows, those that requests have set included. */
  get windows(): readonly number[] {
    return [...new Set([...this.#windows, ...this.#windowsOfRequests])];
  }

  /** Those of further limits. */
  get furtherWindows(): readonly number[] {
    return [...this.#furtherWindows];
  }

  /** Whether a request has asked for windows of this length, with which a maximum of any rules can be in force. */
  isOfRequest(windowMillis: number): boolean {
    return this.#windowsOfRequests.has(windowMillis);
  }

  /** Whether any rules have this maximum for windows of this length. */
  hasUnit(windowMillis: number, maxRequests: number): boolean {
    return this.#units.has(unit(windowMillis, maxRequests));
  }
}

function unit(windowMillis: number, maxRequests: number): string {
  return `${windowMillis}:${maxRequests}`;
}
