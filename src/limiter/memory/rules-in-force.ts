import type { InstanceDetail, KeyLimits, Overrides } from '../limiter.js';
import { areSame, hasSettableWindow, isSameAlgorithm, type Limit, type Limits } from '../limits.js';
import type { Approvals } from './approvals.js';
import type { LaterLimits, Window } from './limits/window.js';
import { kindOf } from '../kinds/kinds.js';

/**
 * The rules of a key that are in force, and the maxima that requests have set. The length of the window and the maxima
 * are one unit, and change together.
 */
export class RulesInForce {
  #rules: KeyLimits;
  /**
   * The maxima that requests have set. They override the limits, and stay until the key is removed or the limits'
   * ceilings no longer allow them.
   */
  #overriddenMax: number | undefined;
  #overriddenQueueMax: number | undefined;

  constructor(readonly policy: { readonly current: KeyLimits }) {
    this.#rules = policy.current;
  }

  copy(): RulesInForce {
    const copy = new RulesInForce(this.policy);
    copy.#rules = this.#rules;
    copy.#overriddenMax = this.#overriddenMax;
    copy.#overriddenQueueMax = this.#overriddenQueueMax;
    return copy;
  }

  get limits(): Limits {
    return this.#rules.limits;
  }

  /** The own limit by the latest rules, which may not be in force yet. */
  get latestOwn(): Limit {
    return this.policy.current.limits[0];
  }

  /** The maximum of the own limit, which a request may have set. */
  get maximum(): number {
    return this.#overriddenMax ?? this.#rules.limits[0].maximum;
  }

  get maxRequestsInQueue(): number {
    return this.#overriddenQueueMax ?? this.#rules.maxRequestsInQueue;
  }

  /** Which limits requests have set. @param window of the key */
  overriddenOf(window: Window): InstanceDetail['overridden'] {
    return {
      maxRequests: this.#overriddenMax !== undefined,
      maxRequestsInQueue: this.#overriddenQueueMax !== undefined,
      windowMillis: window.hasOverride,
    };
  }

  /** Takes what a check sets. */
  override({ maxRequests, maxRequestsInQueue }: Overrides): void {
    this.#overriddenMax = maxRequests ?? this.#overriddenMax;
    this.#overriddenQueueMax = maxRequestsInQueue ?? this.#overriddenQueueMax;
  }

  /**
   * Takes the length that a check sets for the key's windows.
   * @param isFirst whether the window begins with the check
   * @returns whether it sets one
   */
  overrideWindow(window: Window, { windowMillis }: Overrides, isFirst: boolean): boolean {
    if (windowMillis === undefined || !hasSettableWindow(this.#rules.limits[0])) return false;
    if (isFirst) window.begin(windowMillis);
    else window.override(windowMillis);
    return true;
  }

  /** Drops the length that a request has set, if the window is over and the latest rules allow none. */
  dropEndedOverride(now: number, window: Window): void {
    if (now < window.end) return;
    if (this.hasBoundary && !hasSettableWindow(this.latestOwn)) window.dropOverride();
  }

  /** What applies after the current window. */
  later(window: Window): LaterLimits {
    const own = this.latestOwn;
    const millis = hasSettableWindow(own) ? window.nextMillis(own.windowMillis) : own.windowMillis;
    const change = this.awaitBoundary(window);
    return {
      at: window.end,
      millis,
      maximum: change ? (this.#overriddenMax ?? own.maximum) : undefined,
      keepsOwn: !change || this.hasLatestAlgorithm,
      keepsFurther: !change || haveSameFurther(this.#rules, this.policy.current),
    };
  }

  dropOverridesAboveCeilings(window: Window): void {
    const { ceilings } = this.#rules;
    if (!ceilings) return;
    if ((this.#overriddenMax ?? -1) > ceilings.maxRequests) this.#overriddenMax = undefined;
    if ((this.#overriddenQueueMax ?? -1) > ceilings.maxRequestsInQueue) {
      this.#overriddenQueueMax = undefined;
    }
    window.dropOverrideAbove(ceilings.windowMillis);
  }

  /** Whether the latest rules have another window, so that they come into force with the next one. */
  awaitBoundary(window: Window): boolean {
    const own = this.latestOwn;
    // As nearly always, which each check asks.
    if (this.#rules === this.policy.current && own.windowMillis === window.millis) return false;
    if (!this.hasBoundary) return false;
    if (!this.hasLatestAlgorithm) return true;
    return hasSettableWindow(own) && own.windowMillis !== window.millis && !window.isOverridden;
  }

  /**
   * When the latest rules come into force, under which another limit may be full; Infinity if no rules wait for that.
   * @param limits how many limits are in force
   */
  limitsChangeAt(window: Window, limits: number): number {
    const mayChange = limits > 1 || !this.hasLatestAlgorithm;
    return mayChange && this.awaitBoundary(window) ? window.end : Infinity;
  }

  /** Whether another own limit waits for the end of the window. */
  get hasBoundary(): boolean {
    return kindOf(this.#rules.limits[0].algorithm).hasBoundary;
  }

  get hasLatestAlgorithm(): boolean {
    return isSameAlgorithm(this.#rules.limits[0], this.latestOwn);
  }

  /**
   * Puts the latest rules into force.
   * @returns until when anything may count that counts in a limit which they changed; -Infinity for nothing
   */
  takeLatest(now: number, approvals: Approvals): number {
    const before = this.#rules;
    const rules = this.policy.current;
    if (rules === before) return -Infinity;
    this.#rules = rules;
    const [own, ...further] = rules.limits;
    const ownUntil = takeOwn(now, approvals, before.limits[0], { ...own, maximum: this.maximum });
    if (haveSameFurther(before, rules)) return ownUntil;
    return Math.max(ownUntil, approvals.takeFurther(now, further));
  }
}

function haveSameFurther(
  { limits: [, ...one] }: KeyLimits,
  { limits: [, ...other] }: KeyLimits,
): boolean {
  return areSame(one, other);
}

/** Takes another kind or calendar of the own limit, or another window of one that has no boundary. */
function takeOwn(now: number, approvals: Approvals, before: Limit, own: Limit): number {
  const isSame = isSameAlgorithm(before, own);
  const isWindow = isSame && kindOf(own.algorithm).hasBoundary;
  if (isWindow || (isSame && own.windowMillis === before.windowMillis)) return -Infinity;
  return approvals.takeOwn(now, own);
}
