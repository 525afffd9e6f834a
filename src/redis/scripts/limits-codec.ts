import type { InstanceDetail, KeyLimits, Quota } from '../../limiter/limiter.js';
import { calendarText } from '../../limiter/kinds/fixed-window.js';
import { type Algorithm, algorithmOfStored, kindOf } from '../../limiter/kinds/kinds.js';
import {
  calendarOf,
  type ForEachLimit,
  forEachLimit,
  type Limit,
  type LimitInForce,
  limitQuota,
  ownLimit,
} from '../../limiter/limits.js';

/** The limits in force of a key. */
export interface LimitsInForce extends Pick<KeyLimits, 'maxRequestsInQueue'> {
  readonly limits: ForEachLimit<LimitInForce>;
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
  const { name, windowMillis, maximum, counts, keepsReleased, lanes } = limit;
  const algorithm = encodeAlgorithm(limit.algorithm);
  if (lanes) {
    const fields = [windowMillis, maximum, counts, keepsReleased ? 'kept' : '', algorithm || ':'];
    return `,${name}=${fields.join(':')}:${lanes.join('+')}`;
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
  const [own = '', ...others] = text.split(',');
  const isOwn = others[0]?.startsWith('=') ?? false;
  const [algorithm = '', ...further] = isOwn ? others : ['', ...others];
  const [name, parameter] = algorithm.slice(1).split(':');
  const numbers = /^(\d+)(\*?):(\d+)(\*?):(\d+)(\*?)$/.exec(own);
  if (!numbers) throw new Error(`no limits: ${text}`);
  const [, length, windowMark, max, maxMark, queueMax, queueMark] = numbers;
  return {
    limits: [
      ownLimit(Number(length), Number(max), algorithmOfStored(name, parameter)),
      ...further.map(furtherIn),
    ],
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
  const [windowMillis, maximum, counts, kept, algorithm, parameter, lanes] = rest.split(':');
  return {
    name,
    windowMillis: Number(windowMillis),
    maximum: Number(maximum),
    algorithm: algorithmOfStored(algorithm, parameter),
    counts: counts === 'hits' ? 'hits' : 'requests',
    keepsReleased: kept === 'kept',
    ...(lanes !== undefined && { lanes: lanes.split('+') }),
  };
}

/** What counts of a key's limits: a number, or, for a key with further limits, the text of `room.used` in `lua/lib/room.lua`. */
export type UsedOfLimits = number | string;

/**
 * Returns what the limits of a key have left.
 * @param millisToRoom until there may be room, if the key has one limit
 */
export function quotaIn(
  limits: ForEachLimit<LimitInForce>,
  used: UsedOfLimits,
  millisToRoom: number,
): Quota {
  const numbers = typeof used === 'number' ? [[used, millisToRoom * 1000]] : numbersIn(used);
  return {
    limits: forEachLimit(limits, (limit, i) => {
      const [ofLimit = 0, micros = 0, windowMillis = limit.windowMillis] = numbers[i] ?? [];
      return limitQuota(limit, windowMillis, limit.maximum, ofLimit, micros / 1000);
    }),
  };
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
