import { isDeepStrictEqual } from 'node:util';

import type { CheckRequest, InstanceDetail, KeyLimits } from '../limiter.js';
import { hasSettableWindow, isSameAlgorithm, type Limit, type Limits } from '../limits.js';
import type { Approvals } from './approvals.js';

/**
 * The limits of a key that count: those of its rules, and what requests have set. `lua/lib/in-force.lua` and
 * `lua/lib/overrides.lua` have the same rules.
 */
export class InForce {
  /** The rules in force: the length of the window and the maxima are one unit, and change together. */
  #rules: KeyLimits;
  /**
   * The maxima that requests have set. They override the limits, and stay until the key is removed or the limits'
   * ceilings no longer allow them.
   */
  #overriddenMax: number | undefined;
  #overriddenQueueMax: number | undefined;

  constructor(
    readonly policy: { readonly current: KeyLimits },
    private readonly approvals: Approvals,
  ) {
    this.#rules = policy.current;
  }

  /** @param approvals those of the key's copy */
  copy(approvals: Approvals): InForce {
    const copy = new InForce(this.policy, approvals);
    copy.#rules = this.#rules;
    copy.#overriddenMax = this.#overriddenMax;
    copy.#overriddenQueueMax = this.#overriddenQueueMax;
    return copy;
  }

  /** Those of the rules in force. */
  get limits(): Limits {
    return this.#rules.limits;
  }

  /** Those of the rules as they are now. */
  get declared(): Limits {
    return this.policy.current.limits;
  }

  /** The maximum of the own limit, which a request may have set. */
  get maximum(): number {
    return this.#overriddenMax ?? this.#rules.limits[0].maximum;
  }

  get maxRequestsInQueue(): number {
    return this.#overriddenQueueMax ?? this.#rules.maxRequestsInQueue;
  }

  get overridden(): InstanceDetail['overridden'] {
    return {
      maxRequests: this.#overriddenMax !== undefined,
      maxRequestsInQueue: this.#overriddenQueueMax !== undefined,
      windowMillis: this.approvals.window.hasOverride,
    };
  }

  /** Whether another own limit waits for the end of the window. */
  get hasBoundary(): boolean {
    return this.#rules.limits[0].algorithm.name === 'fixed_window';
  }

  get hasAlgorithmOfRules(): boolean {
    return isSameAlgorithm(this.#rules.limits[0], this.declared[0]);
  }

  /** Whether the rules have another window, so that they come into force with the next one. */
  get awaitsBoundary(): boolean {
    if (!this.hasBoundary) return false;
    if (!this.hasAlgorithmOfRules) return true;
    const [own] = this.declared;
    const { window } = this.approvals;
    const isOther = hasSettableWindow(own) && own.windowMillis !== window.millis;
    return isOther && !window.isOverridden;
  }

  /** Takes what a check sets. */
  override({
    maxRequests,
    maxRequestsInQueue,
  }: Pick<CheckRequest, 'maxRequests' | 'maxRequestsInQueue'>): void {
    this.#overriddenMax = maxRequests ?? this.#overriddenMax;
    this.#overriddenQueueMax = maxRequestsInQueue ?? this.#overriddenQueueMax;
    this.approvals.own.maximum = this.maximum;
  }

  dropOverridesAboveCeilings(): void {
    const { ceilings } = this.#rules;
    if (!ceilings) return;
    if ((this.#overriddenMax ?? -1) > ceilings.maxRequests) this.#overriddenMax = undefined;
    if ((this.#overriddenQueueMax ?? -1) > ceilings.maxRequestsInQueue) {
      this.#overriddenQueueMax = undefined;
    }
    this.approvals.window.dropOverrideAbove(ceilings.windowMillis);
  }

  /**
   * Takes the rules as they are now.
   * @returns until when anything may count because of the change; -Infinity for nothing
   */
  takeRules(now: number): number {
    const before = this.#rules;
    const rules = this.policy.current;
    if (rules === before) return -Infinity;
    this.#rules = rules;
    const own = { ...rules.limits[0], maximum: this.maximum };
    const ownUntil = this.#takeOwn(now, before.limits[0], own);
    this.approvals.own.maximum = this.maximum;
    const [, ...further] = rules.limits;
    if (isDeepStrictEqual(further, before.limits.slice(1))) return ownUntil;
    // A longer window may end after the key would be removed.
    return Math.max(ownUntil, this.approvals.takeFurther(now, further));
  }

  /** Takes another kind or calendar of the own limit, or another window of one that has no boundary. */
  #takeOwn(now: number, before: Limit, own: Limit): number {
    const isSame = isSameAlgorithm(before, own);
    const isWindow = isSame && own.algorithm.name === 'fixed_window';
    if (isWindow || (isSame && own.windowMillis === before.windowMillis)) return -Infinity;
    return this.approvals.takeOwn(now, own);
  }
}
