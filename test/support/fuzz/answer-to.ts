import { type Caller, type Declared, type Scope, sortOf, TREATMENTS } from './declared.js';

/** What the answer to a request depends on. */
export interface Asked {
  /** What a right request is answered, and one that is wrong in itself. */
  readonly statuses: readonly number[];
  /** What a token must be good for, where that is asked before all else. */
  readonly scope?: Scope | undefined;
  /** Which it names, as far as it can be read. */
  readonly key?: string | undefined;
  readonly query?: string | undefined;
}

const OVERRIDES = ['maxRequests', 'maxRequestsInQueue'] as const;

/** @returns the statuses of a request without a good token, if the service wants one */
export function answerToNobody({ scope, statuses }: Asked): readonly number[] {
  return scope ? [401] : statuses;
}

/** @returns the statuses that a caller's request may be answered */
export function answerTo(asked: Asked, caller: Caller, declared: Declared): readonly number[] {
  const { scope, key, query = '', statuses } = asked;
  if (!scope) return statuses;
  if (!caller.scopes.includes(scope)) return [403];
  if (key !== undefined && !mayTouch(caller, key)) return [403];
  const isWrong = statuses.includes(400);
  if (scope !== 'check' || key === undefined || isWrong) return statuses;
  return isRefused(key, query, caller, declared) ? [403] : statuses;
}

export function mayTouch({ sorts }: Caller, key: string): boolean {
  const sort = sortOf(key);
  return !sorts || (sort !== undefined && sorts.includes(sort));
}

/** What a check of a key that nobody has asked for yet is answered. */
export function firstAnswer(key: string, query: string): readonly number[] {
  const sort = sortOf(key);
  const isOff = sort !== undefined && TREATMENTS[sort].maximum === 0;
  return [isOff && overridesIn(query).size === 0 ? 429 : 200];
}

function isRefused(key: string, query: string, caller: Caller, declared: Declared): boolean {
  const overrides = overridesIn(query);
  if (overrides.size > 0 && !caller.scopes.includes('configure')) return true;
  const sort = sortOf(key);
  if (sort === undefined) return false;
  if (sort === 'stranger' && declared.refusesStrangers) return true;
  const { canBeSet, ceilings } = TREATMENTS[sort];
  return OVERRIDES.some((name) => {
    const value = overrides.get(name);
    return value !== undefined && (canBeSet === false || value > (ceilings?.[name] ?? Infinity));
  });
}

function overridesIn(query: string): Map<(typeof OVERRIDES)[number], number> {
  const given = new URLSearchParams(query);
  return new Map(
    OVERRIDES.flatMap((name) => (given.has(name) ? [[name, Number(given.get(name))]] : [])),
  );
}
