import {
  type Decision,
  DENIAL_REASONS,
  type DenialReason,
  isVerdict,
  type Verdict,
} from '../limiter/limiter.js';

/** The labels that say what was decided, and why. */
export interface OutcomeLabels {
  readonly outcome: string;
  readonly reason: string;
}

/** The labels of verdicts, by name, in the order in which their series begin. */
export const VERDICTS = {
  capacity: { outcome: 'approved', reason: 'capacity' },
  waited: { outcome: 'approved', reason: 'waited' },
  ...(Object.fromEntries(
    DENIAL_REASONS.map((reason) => [reason, { outcome: 'denied', reason }]),
  ) as Record<DenialReason, OutcomeLabels>),
  shadowed: { outcome: 'shadowed', reason: 'limit_reached' },
} as const satisfies Record<string, OutcomeLabels>;

/** The same of decisions that say what has become of a waiter. */
export const OF_WAITERS = {
  withdrawn: { outcome: 'withdrawn', reason: 'client_disconnected' },
  told: { outcome: 'waiting', reason: 'answer_due' },
  left: { outcome: 'waiting', reason: 'client_disconnected' },
} as const satisfies Record<string, OutcomeLabels>;

/**
 * Returns the name of a verdict.
 * @param isShadow whether the key's rule never denies
 */
export function verdictName(verdict: Verdict, isShadow: boolean): keyof typeof VERDICTS {
  if (verdict.outcome === 'approved') return verdict.waited ? 'waited' : 'capacity';
  return isShadow ? 'shadowed' : verdict.reason;
}

/** Returns the name of a decision that says what has become of a waiter. */
export function nameOfWaiter(decision: Exclude<Decision, Verdict>): keyof typeof OF_WAITERS {
  if (decision.outcome === 'withdrawn') return 'withdrawn';
  return decision.place ? 'told' : 'left';
}

export function outcomeLabels(decision: Decision, isShadow: boolean): OutcomeLabels {
  return isVerdict(decision)
    ? VERDICTS[verdictName(decision, isShadow)]
    : OF_WAITERS[nameOfWaiter(decision)];
}
