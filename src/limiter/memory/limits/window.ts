/** A time in whole microseconds. @param millis the same in milliseconds */
export function microsOf(millis: number): number {
  return Math.round(millis * 1000);
}

/** A key is removed when this many windows have passed without a check. */
export const IDLE_WINDOWS = 3;

/** What applies to a key at the end of its current window. Times are milliseconds of a clock. */
export interface LaterLimits {
  readonly at: number;
  /** The length of the windows of the own limit. */
  readonly millis: number;
  /** The maximum of the own limit. Undefined if no rules wait for the end of the window. */
  readonly maximum: number | undefined;
  /** Whether the own limit is of the same kind. */
  readonly keepsOwn: boolean;
  /** Whether the further limits are the same. */
  readonly keepsFurther: boolean;
}

/**
 * Fixed windows, back to back from the first check of a key. `lua/limits/window.lua` has the same
 * rules.
 */
export class Window {
  #isOverridden = false;
  /** The length that a request has set for the windows from the next one on. */
  #nextOverride: number | undefined;
  /** A vendor's report ends then, and the window does not end before. Undefined without one, which takes less memory. */
  #reportedUntil: number | undefined;

  /**
   * @param start when the current window began
   * @param millis its length
   */
  constructor(
    public start: number,
    public millis: number,
  ) {}

  get end(): number {
    return Math.max(this.start + this.millis, this.reportedUntil);
  }

  /** When the vendor's report ends that is in force; -Infinity if there is none. */
  get reportedUntil(): number {
    return this.#reportedUntil ?? -Infinity;
  }

  copy(): Window {
    return this.copyTo(new Window(this.start, this.millis));
  }

  /** Begins a report, or ends it with undefined. The window lasts at least as long. */
  setReportedUntil(time: number | undefined): void {
    this.#reportedUntil = time;
  }

  /** When the key is removed if nobody checks it again. */
  get idleAt(): number {
    return this.end + IDLE_WINDOWS * this.millis;
  }

  /** Until the window ends that comes this many windows after this one, if those last `laterMillis`. */
  millisToEndAfter(now: number, windows: number, laterMillis: number): number {
    return this.end - now + windows * laterMillis;
  }

  /** Whether a request has set the length of the current window. */
  get isOverridden(): boolean {
    return this.#isOverridden;
  }

  /** Whether a request has set the length of the current window, or of the next one. */
  get hasOverride(): boolean {
    return this.#isOverridden || this.#nextOverride !== undefined;
  }

  /** Gives the current window another length. Its start stays, but a window that is over by that length ends. */
  change(now: number, millis: number): void {
    this.millis = millis;
    this.rollTo(now, millis);
  }

  /** Begins a window of another length now. */
  restart(now: number, millis: number): void {
    this.start = now;
    this.millis = millis;
    this.#reportedUntil = undefined;
  }

  /** Sets the length of the first window, which a request sets. */
  begin(millis: number): void {
    this.millis = millis;
    this.#isOverridden = true;
  }

  /** Sets the length of the windows from the next one on. */
  override(millis: number): void {
    const isCurrent = millis === this.millis;
    this.#nextOverride = isCurrent ? undefined : millis;
    this.#isOverridden ||= isCurrent;
  }

  /** Drops an override that is longer than the rules allow. */
  dropOverrideAbove(ceiling: number): void {
    const longest = Math.max(this.#nextOverride ?? 0, this.#isOverridden ? this.millis : 0);
    if (longest > ceiling) this.dropOverride();
  }

  dropOverride(): void {
    this.#nextOverride = undefined;
    this.#isOverridden = false;
  }

  /** @param ofRules the length of a window for which no request has set another */
  nextMillis(ofRules: number): number {
    return this.#nextOverride ?? (this.#isOverridden ? this.millis : ofRules);
  }

  /**
   * Moves on to the window that holds `now`, in milliseconds. A new length counts from the last boundary before `now`.
   * @param ofRules as for `nextMillis`
   * @returns whether that is another window
   */
  rollTo(now: number, ofRules: number): boolean {
    if (now < this.end) return false;
    const millis = this.nextMillis(ofRules);
    this.#isOverridden ||= this.#nextOverride !== undefined;
    this.#nextOverride = undefined;
    this.start = this.#startOf(now, millis);
    this.millis = millis;
    this.#reportedUntil = undefined;
    return true;
  }

  /** Makes another one the same as this. */
  protected copyTo(copy: Window): Window {
    copy.start = this.start;
    copy.millis = this.millis;
    copy.#isOverridden = this.#isOverridden;
    copy.#nextOverride = this.#nextOverride;
    copy.#reportedUntil = this.#reportedUntil;
    return copy;
  }

  /** When the window begins that holds `now`. A new length counts from the last boundary before. */
  #startOf(now: number, millis: number): number {
    const boundary = now - ((now - this.end) % this.millis);
    return now - ((now - boundary) % millis);
  }
}
