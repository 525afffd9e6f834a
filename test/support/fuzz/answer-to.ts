import {
  BURST,
  type Caller,
  type Declared,
  LANES,
  MAXIMUM,
  type Scope,
  sortOf,
  type Treatment,
  TREATMENTS,
} from './declared.js';

/** The properties of a request that decide its answer. */
export interface Asked {
  /** The statuses of the request if its caller may send it. */
  readonly statuses: readonly number[];
  /** The scope that a token needs, if that is checked first. */
  readonly scope?: Scope | undefined;
  /** The key that it names, if it can be read. */
  readonly key?: string | undefined;
  readonly query?: string | undefined;
  /** Whether it is about an approval. Unlike a check it creates no key, so any key will do. */
  readonly isAmendment?: boolean;
  /** Whether it is a pause or a report, which takes a scope of its own. */
  readonly changesKey?: boolean;
  /** Whether its 400, if that is its answer, follows from the limits of its key: a caller without the rights gets a 403. */
  readonly isJudgedByLimits?: boolean;
}

const OVERRIDES = ['maxRequests', 'maxRequestsInQueue', 'windowMillis'] as const;
const RULED = [...OVERRIDES, 'holdMillis'] as const;

/** @returns the statuses of a request without a valid token, if the service needs one */
export function answerToNobody({ scope, statuses }: Asked): readonly number[] {
  return scope ? [401] : statuses;
}

/** @returns the possible statuses of a caller's request */
export function answerTo(asked: Asked, caller: Caller, declared: Declared): readonly number[] {
  const { scope, key, statuses } = asked;
  if (!scope) return statuses;
  if (!caller.scopes.includes(scope)) return [403];
  if (key !== undefined && !mayTouch(caller, key)) return [403];
  const isWrong = statuses.includes(400) && asked.isJudgedByLimits !== true;
  if (scope !== 'check' || key === undefined || isWrong) return statuses;
  return isRefused(key, asked, caller, declared) ? [403] : statuses;
}

export function mayTouch({ sorts }: Caller, key: string): boolean {
  const sort = sortOf(key);
  return !sorts || (sort !== undefined && sorts.includes(sort));
}

/** The statuses of the first check of a key. */
export function firstAnswer(key: string, query: string): readonly number[] {
  const sort = sortOf(key);
  const { isOff, algorithm, order } = sort === undefined ? {} : TREATMENTS[sort];
  if (!hasLists(query, order)) return [400];
  const given = ruledIn(query);
  if (algorithm && given.has('windowMillis')) return [400];
  if (algorithm) {
    const hits = Number(new URLSearchParams(query).get('hits') ?? 1);
    const maximum = given.get('maxRequests') ?? MAXIMUM;
    if (hits > (algorithm.name === 'token_bucket' ? Math.min(BURST, maximum) : maximum))
      return [400];
  }
  // A length of the window leaves the maximum as it is.
  given.delete('windowMillis');
  return [isOff && !setsLimit(given) ? 429 : 200];
}

/** Whether a key has the lane or the group that a check names. */
function hasLists(query: string, order: Treatment['order']): boolean {
  const given = new URLSearchParams(query);
  const [lane, group] = [given.get('lane'), given.get('group')];
  if (lane !== null && (order !== 'lanes' || LANES.every(({ name }) => name !== lane)))
    return false;
  return group === null || order === 'fair';
}

/** The statuses of a report that a key may get. Only fixed windows take reports. */
export function answerToReport(key: string, query: string): readonly number[] {
  const sort = sortOf(key);
  const { algorithm, further = [] } = sort === undefined ? {} : TREATMENTS[sort];
  const name = new URLSearchParams(query).get('limit') ?? 'default';
  const own = { name: 'default', algorithm };
  const limit = [own, ...further].find((each) => each.name === name);
  return [limit && (limit.algorithm?.name ?? 'fixed_window') === 'fixed_window' ? 200 : 400];
}

function isRefused(
  key: string,
  { query = '', isAmendment = false, changesKey = false }: Asked,
  caller: Caller,
  declared: Declared,
): boolean {
  const given = ruledIn(query);
  const sort = sortOf(key);
  const canConfigure = caller.scopes.includes('configure');
  if (changesKey) {
    if (sort === 'stranger' && declared.refusesStrangers) return true;
    return !canConfigure && !(sort && TREATMENTS[sort].canBePaused);
  }
  if (setsLimit(given) && !canConfigure) return true;
  const hits = new URLSearchParams(query).get('hits');
  if (isAmendment && hits === '0' && !caller.scopes.includes('release')) return true;
  if (sort === undefined) return false;
  if (sort === 'stranger' && declared.refusesStrangers && !isAmendment) return true;
  const { canBeSet, ceilings, algorithm } = TREATMENTS[sort];
  // No length of the window is allowed, which comes before its ceiling.
  if (algorithm) given.delete('windowMillis');
  const renewsAlone = isAmendment && hits === null && !given.has('holdMillis');
  if (renewsAlone && canBeSet === false) return true;
  return RULED.some((name) => {
    const value = given.get(name);
    return value !== undefined && (canBeSet === false || value > (ceilings?.[name] ?? Infinity));
  });
}

/** Whether a request sets a limit of its key, which takes a scope of its own. */
function setsLimit(given: ReadonlyMap<string, number>): boolean {
  return OVERRIDES.some((name) => given.has(name));
}

/** The parameters of a query that rules may forbid or bound. */
function ruledIn(query: string): Map<(typeof RULED)[number], number> {
  const given = new URLSearchParams(query);
  return new Map(
    RULED.flatMap((name) => (given.has(name) ? [[name, Number(given.get(name))]] : [])),
  );
}
