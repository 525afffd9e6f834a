import { isDeepStrictEqual } from 'node:util';

import type { CalendarName } from './calendar/calendar.js';
import { type Algorithm, DEFAULT_ALGORITHM, kindOf, type NamedAlgorithm } from './kinds/kinds.js';
import type { QueueList } from './queue-order.js';

/** A limit of a key. A check takes from all limits of its key, or from none. */
export interface Limit<Kind extends NamedAlgorithm = Algorithm> {
  /**
   * Unique among the limits of its key. Undefined for the key's own limit, which clients know by the name of the rule.
   */
  readonly name?: string | undefined;
  /**
   * Its windows follow back to back from the check that was the first under this limit. With a calendar: the length of the
   * current window, or, in rules, of the longest one.
   */
  readonly windowMillis: number;
  readonly maximum: number;
  readonly algorithm: Kind;
  /** Whether an approval counts with its hits, or as one. */
  readonly counts: 'hits' | 'requests';
  /**
   * Whether an approval counts until the window ends in which it was given, and in no other: a release gives nothing
   * back, and a hold does not count in later windows.
   */
  readonly keepsReleased: boolean;
  /** The lanes whose checks it counts. Undefined: it counts all checks. Only further limits have it. */
  readonly lanes?: readonly string[] | undefined;
  /** Each group has the limit to itself, `maximum` or its own. Undefined: all checks share it. Only further limits have it. */
  readonly perGroup?: { readonly maxima: ReadonlyMap<string, number> } | undefined;
  /** As a group has it: the name of the group. */
  readonly group?: string | undefined;
}

/** One value for each limit of a key: the key's own limit first, then the further limits in the order of the rules. */
export type ForEachLimit<Value> = readonly [Value, ...Value[]];

export type Limits = ForEachLimit<Limit>;

/** A limit that is in force, by whatever rules. */
export type LimitInForce = Limit<NamedAlgorithm>;

/** What a limit has left after a decision. */
export interface LimitQuota extends LimitInForce {
  readonly remaining: number;
  /** Until there is more room: until its window ends, a step of it does, one more hit fits, a hold lapses, or a pause ends. In milliseconds. */
  readonly resetMillis: number;
}

/** A limit as of now. */
export interface LimitState extends LimitInForce {
  /** What the approvals take of it. */
  readonly used: number;
  readonly millisToWindowEnd: number;
}

/** The limit that every key has. It counts hits, and a release gives them back. */
export function ownLimit<Kind extends NamedAlgorithm = Algorithm>(
  windowMillis: number,
  maximum: number,
  algorithm?: Kind,
): Limit<Kind>;
export function ownLimit(
  windowMillis: number,
  maximum: number,
  algorithm: NamedAlgorithm = DEFAULT_ALGORITHM,
): LimitInForce {
  return {
    name: undefined,
    windowMillis,
    maximum,
    algorithm,
    counts: 'hits',
    keepsReleased: false,
  };
}

/** The calendar of a limit; undefined if its windows have a fixed length, or it has none. */
export function calendarOf<Named extends CalendarName>({
  algorithm,
}: {
  readonly algorithm: Algorithm<Named>;
}): Named | undefined {
  return 'calendar' in algorithm ? algorithm.calendar : undefined;
}

/** Whether requests may set the length of its windows, as far as it depends on the algorithm. */
export function hasSettableWindow({ algorithm }: Pick<LimitInForce, 'algorithm'>): boolean {
  return kindOf(algorithm).hasSettableWindow(algorithm);
}

/** Whether two limits count by the same algorithm, with the same calendar or parameter. */
export function isSameAlgorithm(
  one: Pick<LimitInForce, 'algorithm'>,
  other: Pick<LimitInForce, 'algorithm'>,
): boolean {
  // Nearly all limits share one object.
  if (one.algorithm === other.algorithm) return true;
  const [calendar, otherCalendar] = [calendarOf(one), calendarOf(other)];
  return calendar || otherCalendar
    ? isSameCalendar(calendar, otherCalendar)
    : isDeepStrictEqual(one.algorithm, other.algorithm);
}

/** Whether these are the same limits, in the same order. */
export function areSame(one: readonly Limit[], other: readonly Limit[]): boolean {
  return one.length === other.length && one.every((limit, i) => isSame(limit, other[i]));
}

/** A calendar that was read again is another object. */
function isSame(one: Limit, other: Limit | undefined): boolean {
  const [rest, ofOther] = [one, other].map((limit) => ({ ...limit, algorithm: undefined }));
  return other !== undefined && isSameAlgorithm(one, other) && isDeepStrictEqual(rest, ofOther);
}

/** Whether both are missing, or divide time in the same way. */
export function isSameCalendar(one?: CalendarName, other?: CalendarName): boolean {
  return one?.unit === other?.unit && one?.timeZone === other?.timeZone;
}

/** How much may count of a limit at once. */
export function capacityOf({
  maximum,
  algorithm,
}: Pick<LimitInForce, 'maximum' | 'algorithm'>): number {
  return kindOf(algorithm).capacity(algorithm, maximum);
}

/** Returns what a limit has left. @param used what counts now; Infinity if nothing is left all the same */
export function limitQuota(
  { name, algorithm, counts, keepsReleased, lanes }: LimitInForce,
  windowMillis: number,
  maximum: number,
  used: number,
  resetMillis: number,
): LimitQuota {
  const remaining = Math.max(0, capacityOf({ maximum, algorithm }) - used);
  // A spread takes longer.
  return {
    name,
    windowMillis,
    maximum,
    algorithm,
    counts,
    keepsReleased,
    lanes,
    remaining,
    resetMillis,
  };
}

/** For how long an approval may count, in milliseconds. */
export function longestCountMillis({ windowMillis, algorithm }: Limit): number {
  return kindOf(algorithm).longestCountMillis(algorithm, windowMillis);
}

/** Returns one value for each limit, in their order. */
export function forEachLimit<From, To>(
  limits: ForEachLimit<From>,
  valueOf: (from: From, index: number) => To,
): ForEachLimit<To> {
  // Each decision has a quota, and most keys have one limit: to map it takes longer.
  return limits.length === 1 ? [valueOf(limits[0], 0)] : (limits.map(valueOf) as [To, ...To[]]);
}

/** Whether a limit counts the checks of a list. @param list undefined for checks without a lane or a group */
export function countsList(
  { lanes, perGroup, group }: Pick<LimitInForce, 'lanes' | 'perGroup' | 'group'>,
  list: QueueList | undefined,
): boolean {
  if (perGroup) return list?.kind === 'group' && list.name === group;
  return !lanes || (list?.kind === 'lane' && lanes.includes(list.name));
}

/** A limit as a group has it. */
export function limitOfGroup<Of extends LimitInForce>(limit: Of, group: string): Of {
  return { ...limit, maximum: limit.perGroup?.maxima.get(group) ?? limit.maximum, group };
}

/** How much a check with this number of hits takes of a limit. */
export function takenOf({ counts }: Pick<Limit, 'counts'>, hits: number): number {
  return counts === 'hits' ? hits : 1;
}
