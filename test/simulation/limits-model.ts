import type { CheckBatchRun, ScriptRun } from './script-run.js';
import type { StoredState } from '../support/stored-state.js';

/** The two limits of a key, and which of them a request has set. */
export interface KeptLimits {
  readonly max: Kept;
  readonly queueMax: Kept;
}

interface Kept {
  readonly value: number;
  readonly isOverridden: boolean;
}

/**
 * The limits that a key has to have one after the other in a script call, of which the last stay: those of the
 * caller, but for what requests have set and the caller's ceilings let count. Only checks change them.
 * @param before of the same key, if there was one
 */
export function limitsDuring(run: ScriptRun, before: StoredState | undefined): KeptLimits[] {
  const { script, limits, batches } = run;
  const ofCaller: KeptLimits = {
    max: { value: limits.max, isOverridden: false },
    queueMax: { value: limits.queueMax, isOverridden: false },
  };
  const were = before ? limitsOf(before) : ofCaller;
  if (script !== 'check' || batches.length === 0) return [were];
  let now = were;
  return batches.map((batch) => (now = configured(now, ofCaller, batch)));
}

export function limitsOf({ max, queueMax, overridden }: StoredState): KeptLimits {
  return {
    max: { value: max, isOverridden: overridden.includes('max') },
    queueMax: { value: queueMax, isOverridden: overridden.includes('queueMax') },
  };
}

function configured(
  { max, queueMax }: KeptLimits,
  ofCaller: KeptLimits,
  { overrides, ceilings }: CheckBatchRun,
): KeptLimits {
  return {
    max: one(max, ofCaller.max, overrides.max, ceilings.max),
    queueMax: one(queueMax, ofCaller.queueMax, overrides.queueMax, ceilings.queueMax),
  };
}

function one(was: Kept, ofCaller: Kept, override: number | undefined, ceiling: number): Kept {
  if (override !== undefined) return { value: override, isOverridden: true };
  return was.isOverridden && was.value <= ceiling ? was : ofCaller;
}
