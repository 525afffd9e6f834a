import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import { encodeLimits } from '../../../src/redis/scripts/limits-codec.js';
import type { Random } from '../chaos/random.js';
import { type FurtherLimit, encodeFurther, furtherIn } from '../further-limits.js';
import { rulesIn } from '../rules-in.js';
import { calendarNamed, drawCalendar, windowByRules, withWindowsByRules } from './calendars.js';

/** What a world is made of, before anything happens in it. */
export interface WorldShape {
  readonly replicas: number;
  readonly windowMillis: number;
  readonly leaseMillis: number;
  readonly maxRequests: number;
  readonly maxRequestsInQueue: number;
  /** How many groups the key may have that are not idle. */
  readonly mostGroups: number;
  /** Of the own limit, by the rules that all replicas begin with. */
  readonly algorithm: Algorithm;
  /** The further limits by the rules that all replicas begin with. */
  readonly further: readonly FurtherLimit[];
  /** By how much the clock of each replica runs faster than Redis's, in thousandths: timers come early or late. */
  readonly drift: readonly number[];
  /**
   * Whether time stands still while anything is pending. What is promised of such a world is more: nothing is
   * late in it but by the faults themselves.
   */
  readonly isPrompt: boolean;
}

/** Of windows, in ms. With the shortest, a key becomes idle while a replica has not heard of a grant. */
export const WINDOWS = [5, 20, 60, 200, 500, 500, 1000, 4000] as const;

export const REPLICA_NAMES = ['A', 'B', 'C', 'D'] as const;

/** Of the algorithms that are drawn. */
const CALENDAR_CHANCE = 0.12;

/** Of further limits. */
export const LIMIT_NAMES = ['a', 'b', 'c'] as const;

/** Of limits that each group has to itself. */
export const LIMITS_OF_GROUPS = ['g', 'h'] as const;
/** The groups that checks name. */
export const GROUPS = ['x', 'y', ''] as const;
/** The share of worlds that have limits of groups. */
const OF_GROUPS_CHANCE = 0.1;
/** The share of these that allow fewer groups than checks name. */
const FEW_GROUPS_CHANCE = 0.3;
const MANY_GROUPS = 100;

/** Of further limits, some count only these lanes. A world without lanes has nobody in them. */
const LANES_CHANCE = 0.15;
const COUNTED_LANES = [['a'], ['b'], ['a', 'b'], ['c']] as const;

/** The most by which the clock of a replica is faster or slower than another, as a part of the time. */
export const DRIFT = 0.02;

export function drawShape(random: Random): WorldShape {
  const replicas = random.whole(2, REPLICA_NAMES.length);
  const drifts = random.chance(0.5);
  const ofGroups = random.fork('of groups');
  const mostGroups = random.fork('most groups');
  return withWindowsByRules({
    replicas,
    windowMillis: random.pick(WINDOWS),
    leaseMillis: random.pick([600, 1500, 3000]),
    maxRequests: random.pick([1, 1, 2, 3]),
    maxRequestsInQueue: random.pick([2, 5, 20]),
    mostGroups: mostGroups.chance(FEW_GROUPS_CHANCE)
      ? mostGroups.whole(1, GROUPS.length - 1)
      : MANY_GROUPS,
    algorithm: drawAlgorithm(random.fork('algorithm')),
    further: withLimitsOfGroups(
      drawFurther(random.fork('further')),
      ofGroups.chance(OF_GROUPS_CHANCE) ? drawLimitsOfGroups(ofGroups) : [],
    ),
    drift: Array.from({ length: replicas }, () =>
      drifts ? random.whole(-1000 * DRIFT, 1000 * DRIFT) : 0,
    ),
    isPrompt: random.chance(0.4),
  });
}

/** Half of all keys have none. */
export function drawFurther(random: Random): FurtherLimit[] {
  if (random.chance(0.5)) return [];
  return LIMIT_NAMES.filter(() => random.chance(0.5)).map((name) => drawLimit(random, name));
}

export function drawLimit(random: Random, name: string): FurtherLimit {
  const algorithm = drawAlgorithm(random.fork(name));
  const ofLanes = random.fork(`${name} lanes`);
  const lanes = ofLanes.chance(LANES_CHANCE) ? ofLanes.pick(COUNTED_LANES) : undefined;
  return {
    name,
    windowMillis: windowByRules(algorithm, random.pick(WINDOWS)),
    maximum: random.whole(1, 4),
    ...(algorithm !== DEFAULT_ALGORITHM && { algorithm }),
    counts: random.pick(['hits', 'requests']),
    keepsReleased: random.chance(0.3),
    ...(lanes && { lanes }),
  };
}

/** Limits that all share, and those that each group has to itself, which come last. A key has no limits of lanes beside these. */
export function withLimitsOfGroups(
  further: readonly FurtherLimit[],
  ofGroups: readonly FurtherLimit[],
): FurtherLimit[] {
  const shared = further.filter(({ perGroup }) => !perGroup);
  if (ofGroups.length === 0) return shared;
  return [...shared.map(({ lanes: _, ...limit }) => limit), ...ofGroups];
}

/** One limit, or two. */
export function drawLimitsOfGroups(random: Random): FurtherLimit[] {
  const names = random.chance(0.3) ? LIMITS_OF_GROUPS : [random.pick(LIMITS_OF_GROUPS)];
  return names.map((name): FurtherLimit => {
    const algorithm = drawWithoutCalendar(random.fork(name));
    return {
      name,
      windowMillis: random.pick(WINDOWS),
      maximum: random.whole(1, 3),
      ...(algorithm !== DEFAULT_ALGORITHM && { algorithm }),
      counts: random.pick(['hits', 'requests']),
      keepsReleased: random.chance(0.3),
      perGroup: { maxima: drawMaxima(random) },
    };
  });
}

/** Of some groups, by their names. */
export function drawMaxima(random: Random): Map<string, number> {
  const some = GROUPS.filter(() => random.chance(0.4));
  return new Map(some.map((name) => [name, random.whole(1, 5)]));
}

/** Most limits have fixed windows, some of these with a calendar. */
export function drawAlgorithm(random: Random): Algorithm {
  const ofCalendar = random.fork('calendar');
  const other = drawWithoutCalendar(random);
  if (!ofCalendar.chance(CALENDAR_CHANCE)) return other;
  return { name: 'fixed_window', calendar: drawCalendar(ofCalendar) };
}

function drawWithoutCalendar(random: Random): Algorithm {
  if (random.chance(0.6)) return DEFAULT_ALGORITHM;
  return random.chance(0.5)
    ? { name: 'sliding_window', steps: random.whole(2, 5) }
    : { name: 'token_bucket', burst: random.pick([1, 1, 2, 3]) };
}

/** An algorithm as `fixed_window`, or `<name>:<steps, burst or calendar>`. */
export function formatAlgorithm(algorithm: Algorithm): string {
  const own = ownLimit(0, 0, algorithm);
  const text = encodeLimits({ limits: [own], maxRequestsInQueue: 0 });
  const [, named = DEFAULT_ALGORITHM.name] = text.split('=');
  return named;
}

export function parseAlgorithm(text: string): Algorithm {
  if (text === DEFAULT_ALGORITHM.name) return DEFAULT_ALGORITHM;
  return rulesIn(`0:0:0,=${text}`, calendarNamed).limits[0].algorithm;
}

/** The limits as `<name>=<window>:<maximum>:<what it counts>[:kept]`, with a comma between two; `none` for none. */
export function formatFurther(further: readonly FurtherLimit[]): string {
  return further.length === 0 ? 'none' : encodeFurther(further).slice(1);
}

export function parseFurther(text: string): FurtherLimit[] {
  return furtherIn(text, calendarNamed);
}

const FORMAT =
  /^(prompt|slow) world of (\d) replicas, drift ([-\d ]+), window (\d+), lease (\d+), max (\d+), queue (\d+)(?:, groups (\d+))?(?:, algorithm ([\w:.]+))?(?:, limits (\S+))?$/;

export function formatShape(shape: WorldShape): string {
  const { replicas, windowMillis, leaseMillis, maxRequests, maxRequestsInQueue, drift } = shape;
  const named = formatAlgorithm(shape.algorithm);
  const groups = shape.mostGroups === MANY_GROUPS ? '' : `, groups ${shape.mostGroups}`;
  const algorithm = named === DEFAULT_ALGORITHM.name ? '' : `, algorithm ${named}`;
  const further = shape.further.length === 0 ? '' : `, limits ${formatFurther(shape.further)}`;
  return (
    `${shape.isPrompt ? 'prompt' : 'slow'} world of ${replicas} replicas, drift ${drift.join(' ')}, ` +
    `window ${windowMillis}, lease ${leaseMillis}, max ${maxRequests}, queue ${maxRequestsInQueue}${groups}${algorithm}${further}`
  );
}

/** @throws Error for what `formatShape` does not write */
export function parseShape(text: string): WorldShape {
  const match = FORMAT.exec(text.trim());
  if (!match) throw new Error(`no shape of a world: ${text}`);
  const [, kind, replicas, drift, windowMillis, leaseMillis, max, queue, ...others] = match;
  const [mostGroups, algorithm, further = ''] = others;
  return {
    replicas: Number(replicas),
    windowMillis: Number(windowMillis),
    leaseMillis: Number(leaseMillis),
    maxRequests: Number(max),
    maxRequestsInQueue: Number(queue),
    mostGroups: Number(mostGroups ?? MANY_GROUPS),
    algorithm: parseAlgorithm(algorithm ?? DEFAULT_ALGORITHM.name),
    further: parseFurther(further),
    drift: drift!.split(' ').map(Number),
    isPrompt: kind === 'prompt',
  };
}
