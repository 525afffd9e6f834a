import type { CheckBatchRun, ScriptRun } from './script-run.js';
import type { StoredState } from '../stored-state.js';

/** As lua/lib/rules.lua has it. */
const RULES_STAY_MILLIS = 60_000;

/** The limits of a key, and which maxima a request has set. */
export interface KeptLimits {
  readonly window: number;
  readonly max: Kept;
  readonly queueMax: Kept;
}

interface Kept {
  readonly value: number;
  readonly isOverridden: boolean;
}

/**
 * The limits that a key has to have one after the other in a script call, of which the last stay. Those of the caller
 * take the place of others with the next window, or in a check where its length stays, unless they were loaded before
 * those came into force. Maxima that requests have set stay, but for what the caller's ceilings let count.
 * @param before of the same key, if there was one
 * @param beginsWindow whether another window begins with the call
 */
export function limitsDuring(
  run: ScriptRun,
  before: StoredState | undefined,
  beginsWindow: boolean,
): KeptLimits[] {
  const { script, limits, batches } = run;
  const ofCaller: KeptLimits = {
    window: limits.window,
    max: { value: limits.max, isOverridden: false },
    queueMax: { value: limits.queueMax, isOverridden: false },
  };
  const mayChange = before === undefined || areNewer(run, before);
  const were = before ? limitsOf(before) : ofCaller;
  let now = beginsWindow && mayChange ? withRules(were, ofCaller) : were;
  if (script !== 'check' || batches.length === 0) return [now];
  return batches.map((batch) => (now = configured(now, ofCaller, batch, mayChange)));
}

export function limitsOf({ window, max, queueMax, overridden }: StoredState): KeptLimits {
  return {
    window,
    max: { value: max, isOverridden: overridden.includes('max') },
    queueMax: { value: queueMax, isOverridden: overridden.includes('queueMax') },
  };
}

function areNewer({ rulesLoadedAt, now }: ScriptRun, { limitsSince }: StoredState): boolean {
  return rulesLoadedAt >= limitsSince || now >= limitsSince + RULES_STAY_MILLIS;
}

function withRules({ max, queueMax }: KeptLimits, ofCaller: KeptLimits): KeptLimits {
  return {
    window: ofCaller.window,
    max: max.isOverridden ? max : ofCaller.max,
    queueMax: queueMax.isOverridden ? queueMax : ofCaller.queueMax,
  };
}

function configured(
  { window, max, queueMax }: KeptLimits,
  ofCaller: KeptLimits,
  { overrides, ceilings }: CheckBatchRun,
  mayChange: boolean,
): KeptLimits {
  const isOfWindow = window === ofCaller.window;
  const one = (was: Kept, rules: Kept, override: number | undefined, ceiling: number): Kept => {
    if (override !== undefined) return { value: override, isOverridden: true };
    if (was.isOverridden) return isOfWindow && was.value > ceiling ? rules : was;
    return isOfWindow && mayChange ? rules : was;
  };
  return {
    window,
    max: one(max, ofCaller.max, overrides.max, ceilings.max),
    queueMax: one(queueMax, ofCaller.queueMax, overrides.queueMax, ceilings.queueMax),
  };
}
