import type { InstanceDetail, KeyLimits, Quota } from '../../limiter/limiter.js';
import { calendarText } from '../../limiter/kinds/fixed-window.js';
import { type Algorithm, algorithmOfStored, kindOf } from '../../limiter/kinds/kinds.js';
import {
  calendarOf,
  type ForEachLimit,
  forEachLimit,
  type Limit,
  type LimitInForce,
  limitOfGroup,
  type LimitQuota,
  limitQuota,
  ownLimit,
} from '../../limiter/limits.js';

import type { QueueList } from '../../limiter/queue-order.js';
import { encodeGroup } from './requests-codec.js';

/** The limits in force of a key. */
export interface LimitsInForce extends Pick<KeyLimits, 'maxRequestsInQueue'> {
  readonly limits: ForEachLimit<LimitInForce>;
  /** Those that each group has to itself. */
  readonly limitsOfGroups: readonly LimitInForce[];
  /** Which of them requests have set. */
  readonly overridden: InstanceDetail['overridden'];
}

/** Returns the text of `lua/lib/limits-text.lua`. */
export function encodeLimits({ limits: [own, ...further], maxRequestsInQueue }: KeyLimits): string {
  const ofOwn = `${own.windowMillis}:${own.maximum}:${maxRequestsInQueue}`;
  const algorithm = encodeAlgorithm(own.algorithm);
  return ofOwn + (algorithm && `,=${algorithm}`) + further.map(encodeFurther).join('');
}

/**
 * The same, and what the scripts have to know of its calendars.
 * @param time of Redis, as far as it is known, in milliseconds since 1970
 */
export function encodeRules(rules: KeyLimits, time: number): string {
  let text = encodeLimits(rules);
  for (const limit of rules.limits) {
    const calendar = calendarOf(limit);
    if (!calendar) continue;
    const name = `@${calendarText(calendar)}=`;
    if (text.includes(name)) continue;
    const { start, end, nextEnd } = calendar.windowAt(time);
    text += `${name}${start}:${end}:${nextEnd}`;
  }
  return text;
}

function encodeFurther(limit: Limit): string {
  const { name, windowMillis, maximum, counts, keepsReleased, lanes, perGroup } = limit;
  const algorithm = encodeAlgorithm(limit.algorithm);
  if (lanes || perGroup) {
    const fields = [windowMillis, maximum, counts, keepsReleased ? 'kept' : '', algorithm || ':'];
    const maxima = [...(perGroup?.maxima ?? [])].map(
      ([group, ofGroup]) => `+${encodeURIComponent(group)}>${ofGroup}`,
    );
    const ofGroups = perGroup ? `:group${maxima.join('')}` : '';
    return `,${name}=${fields.join(':')}:${lanes?.join('+') ?? ''}${ofGroups}`;
  }
  const kept = keepsReleased ? ':kept' : algorithm && ':';
  return `,${name}=${windowMillis}:${maximum}:${counts}${kept}${algorithm && `:${algorithm}`}`;
}

/** '' for the algorithm that has no name in the store. */
function encodeAlgorithm(algorithm: Algorithm): string {
  return kindOf(algorithm).toStored(algorithm)?.join(':') ?? '';
}

/**
 * Returns the limits of such a text.
 * @throws Error if it is none
 */
export function limitsIn(text: string): LimitsInForce {
  const [own = '', ...rest] = text.split(',');
  const isOwn = rest[0]?.startsWith('=') ?? false;
  const [algorithm = '', ...further] = isOwn ? rest : ['', ...rest];
  const [name, parameter] = algorithm.slice(1).split(':');
  const numbers = /^(\d+)(\*?):(\d+)(\*?):(\d+)(\*?)$/.exec(own);
  if (!numbers) throw new Error(`no limits: ${text}`);
  const [, length, windowMark, max, maxMark, queueMax, queueMark] = numbers;
  const others = further.map(furtherIn);
  return {
    limits: [
      ownLimit(Number(length), Number(max), algorithmOfStored(name, parameter)),
      ...others.filter(({ perGroup }) => !perGroup),
    ],
    limitsOfGroups: others.filter(({ perGroup }) => perGroup),
    maxRequestsInQueue: Number(queueMax),
    overridden: {
      maxRequests: maxMark !== '',
      maxRequestsInQueue: queueMark !== '',
      windowMillis: windowMark !== '',
    },
  };
}

function furtherIn(text: string): LimitInForce {
  const [name, rest = ''] = text.split('=');
  const [windowMillis, maximum, counts, kept, algorithm, parameter, lanes = '', groups] =
    rest.split(':');
  return {
    name,
    windowMillis: Number(windowMillis),
    maximum: Number(maximum),
    algorithm: algorithmOfStored(algorithm, parameter),
    counts: counts === 'hits' ? 'hits' : 'requests',
    keepsReleased: kept === 'kept',
    ...(lanes !== '' && { lanes: lanes.split('+') }),
    ...(groups !== undefined && { perGroup: { maxima: maximaIn(groups) } }),
  };
}

function maximaIn(groups: string): Map<string, number> {
  const [, ...maxima] = groups.split('+');
  return new Map(
    maxima.map((text) => {
      const [group = '', maximum] = text.split('>');
      return [decodeURIComponent(group), Number(maximum)];
    }),
  );
}

/** What counts of a key's limits: a number, or, for a key with further limits, the text of `room.used` in `lua/lib/room.lua`. */
export type UsedOfLimits = number | string;

/** What counts of the limits that groups have to themselves: by the ids of groups, what `room.used_of_groups` says. */
export type UsedOfGroups = Readonly<Record<string, string>>;

/**
 * Returns a function that says what the limits have left for a check of a list. All that have no limits of their group get the
 * same object.
 * @param limits in force, as Redis writes them
 * @param millisToRoom until there may be room, if the key has one limit
 */
export function quotasIn(
  limits: string,
  used: UsedOfLimits,
  groups: UsedOfGroups | undefined,
  millisToRoom: number,
): (list?: QueueList) => Quota {
  const inForce = limitsIn(limits);
  const quota = quotaIn(inForce.limits, used, millisToRoom);
  if (!groups) return () => quota;
  return (list) => {
    const text = list?.kind === 'group' ? groups[encodeGroup(list.name)] : undefined;
    if (text === undefined || !list) return quota;
    const numbers = numbersIn(text);
    const ofGroup = inForce.limitsOfGroups.map((limit, i) =>
      quotaOfLimit(limitOfGroup(limit, list.name), numbers[i]),
    );
    const [, pausedMicros] = numbers[ofGroup.length] ?? [];
    const groupPausedMillis = pausedMicros === undefined ? undefined : pausedMicros / 1000;
    return { limits: [...quota.limits, ...ofGroup], groupPausedMillis };
  };
}

/** The same for a key with one list. */
export function quotaIn(
  limits: ForEachLimit<LimitInForce>,
  used: UsedOfLimits,
  millisToRoom: number,
): Quota {
  const numbers = typeof used === 'number' ? [[used, millisToRoom * 1000]] : numbersIn(used);
  return { limits: forEachLimit(limits, (limit, i) => quotaOfLimit(limit, numbers[i])) };
}

function quotaOfLimit(limit: LimitInForce, numbers: readonly number[] = []): LimitQuota {
  const [used = 0, micros = 0, windowMillis = limit.windowMillis] = numbers;
  return limitQuota(limit, windowMillis, limit.maximum, used, micros / 1000);
}

/** The numbers of each limit in a text with a comma between two limits. The name of a limit may come before them. */
function numbersIn(text: string): number[][] {
  return text.split(',').map((part) =>
    part
      .slice(part.indexOf('=') + 1)
      .split(':')
      .map(Number),
  );
}
