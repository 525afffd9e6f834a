import type { FurtherLimit } from '../further-limits.js';
import type { CheckBatchRun, ScriptRun } from './script-run.js';
import type { StoredState } from '../stored-state.js';

/** As lua/lib/in-force.lua has it. */
const RULES_STAY_MILLIS = 60_000;

/** The limits of a key, and which of them a request has set. */
export interface KeptLimits {
  readonly window: Kept;
  /** The length that a request has set for the next window; 0 if none has. */
  readonly nextWindow: number;
  readonly max: Kept;
  readonly queueMax: Kept;
  readonly further: readonly FurtherLimit[];
}

interface Kept {
  readonly value: number;
  readonly isOverridden: boolean;
}

/**
 * The limits that a key has to have one after the other in a script call, of which the last stay. Those of the caller
 * take the place of others with the next window, or, if its length stays, in a check or in a settle, unless they were
 * loaded before those came into force. What requests have set stays, but for what the caller's ceilings let count.
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
    window: ofRules(limits.window),
    nextWindow: 0,
    max: ofRules(limits.max),
    queueMax: ofRules(limits.queueMax),
    further: limits.further,
  };
  const mayChange = before === undefined || areNewer(run, before);
  let now = before ? limitsOf(before) : ofCaller;
  if (before && beginsWindow) now = withNextWindow(now, ofCaller, mayChange);
  if (script === 'settle' && mayChange && isWindowOf(now, ofCaller)) now = withRules(now, ofCaller);
  if (script !== 'check' || batches.length === 0) return [now];
  return batches.map((batch) => (now = configured(now, ofCaller, batch, mayChange)));
}

export function limitsOf(state: StoredState): KeptLimits {
  const { window, nextWindow, max, queueMax, overridden, further } = state;
  return {
    window: { value: window, isOverridden: overridden.includes('window') },
    nextWindow,
    max: { value: max, isOverridden: overridden.includes('max') },
    queueMax: { value: queueMax, isOverridden: overridden.includes('queueMax') },
    further: further.map(({ name, windowMillis, maximum, counts, keepsReleased }) => ({
      name,
      windowMillis,
      maximum,
      counts,
      keepsReleased,
    })),
  };
}

/** Whether two lists have the same limits in the same order. */
export function areSameFurther(
  some: readonly FurtherLimit[],
  others: readonly FurtherLimit[],
): boolean {
  return JSON.stringify(some) === JSON.stringify(others);
}

function ofRules(value: number): Kept {
  return { value, isOverridden: false };
}

function areNewer({ rulesLoadedAt, now }: ScriptRun, { limitsSince }: StoredState): boolean {
  return rulesLoadedAt >= limitsSince || now >= limitsSince + RULES_STAY_MILLIS;
}

/** Whether the window is one of these rules, up to a length that a request has set. */
function isWindowOf({ window }: KeptLimits, rules: KeptLimits): boolean {
  return window.isOverridden || window.value === rules.window.value;
}

/** Limits that rules change together, the window's length apart. */
function withRules(now: KeptLimits, { max, queueMax, further }: KeptLimits): KeptLimits {
  return {
    ...now,
    max: now.max.isOverridden ? now.max : max,
    queueMax: now.queueMax.isOverridden ? now.queueMax : queueMax,
    further,
  };
}

function withNextWindow(now: KeptLimits, rules: KeptLimits, mayChange: boolean): KeptLimits {
  const kept = mayChange ? withRules(now, rules) : now;
  if (now.nextWindow > 0) {
    return { ...kept, window: { value: now.nextWindow, isOverridden: true }, nextWindow: 0 };
  }
  return mayChange && !now.window.isOverridden ? { ...kept, window: rules.window } : kept;
}

/** A check sets the length of the next window, and drops one that the rules of this window do not allow. */
function withWindow(now: KeptLimits, override: number | undefined, longest: number): KeptLimits {
  const { value } = now.window;
  let { isOverridden } = now.window;
  let { nextWindow } = now;
  if (Math.max(nextWindow, isOverridden ? value : 0) > longest) {
    isOverridden = false;
    nextWindow = 0;
  }
  if (override !== undefined) {
    nextWindow = override === value ? 0 : override;
    isOverridden ||= override === value;
  }
  return { ...now, window: { value, isOverridden }, nextWindow };
}

function configured(
  before: KeptLimits,
  ofCaller: KeptLimits,
  { overrides, ceilings }: CheckBatchRun,
  mayChange: boolean,
): KeptLimits {
  const isOfCeilings = isWindowOf(before, ofCaller);
  const now = withWindow(before, overrides.window, isOfCeilings ? ceilings.window : Infinity);
  const isOfWindow = isOfCeilings || isWindowOf(now, ofCaller);
  const one = (was: Kept, rules: Kept, override: number | undefined, ceiling: number): Kept => {
    if (override !== undefined) return { value: override, isOverridden: true };
    if (was.isOverridden) return isOfCeilings && was.value > ceiling ? rules : was;
    return isOfWindow && mayChange ? rules : was;
  };
  return {
    ...now,
    max: one(now.max, ofCaller.max, overrides.max, ceilings.max),
    queueMax: one(now.queueMax, ofCaller.queueMax, overrides.queueMax, ceilings.queueMax),
    further: isOfWindow && mayChange ? ofCaller.further : now.further,
  };
}
