import { stringify } from 'yaml';

import { ALGORITHM_NAMES, type AlgorithmName } from '../../../../src/limiter/kinds/kinds.js';
import { algorithmOf } from '../../../../src/limiter/kinds/kinds.js';
import type { Algorithm, NamedAlgorithm } from '../../../../src/limiter/kinds/kinds.js';
import { type LimitInForce, ownLimit } from '../../../../src/limiter/limits.js';
import {
  ALL_KEYS,
  FURTHER,
  GROUPS,
  KEYS,
  LANES,
  limitOf,
  MOST_HITS,
  SHARE,
  TENANT,
  WINDOW_MILLIS,
} from '../limits.js';
import type { Random } from '../random.js';
import type { DeclaredLimits } from './limits-in-force.js';

/** A rule, as the file has it. */
type Rule = Readonly<Record<string, string | number | boolean | QueueRule | readonly LimitRule[]>>;

/** The order of a queue, as the file has it. */
type QueueRule = Readonly<Record<string, number | boolean | object>>;

/** A further limit, as the file has it. */
type LimitRule = Readonly<Record<string, string | number | boolean | object>>;

/** What a rules file declares. */
export interface DeclaredRules {
  readonly rules: readonly Rule[];
  /** What they say of each key of the load. */
  readonly limits: DeclaredLimits;
}

/** The name of the key's own maximum by any rules. */
export const NAME_OF_RULES = /^rules-\d+$/;
/** The greatest maximum that is ever declared. */
export const HIGHEST_MAXIMUM = 12;
const LOWEST_MAXIMUM = 3;
const SINGLE_KEY = 0.4;
const TURNED_OFF = 0.2;
const FURTHER_LIMIT = 0.8;
const UNUSUAL_ALGORITHM = 0.25;
const UNUSUAL_ORDER = 0.2;
const EACH_LANE = 0.8;
const STEPS = [2, 10];

/** A further limit. */
type NamedLimit = LimitInForce & { readonly name: string };

/**
 * Rules for the keys of the load: one for all, one for each sort of key, and some for single keys, of which the last
 * that matches counts.
 * @param number tells them from all others
 */
export function drawRules(random: Random, number: number): DeclaredRules {
  const draw = (): number => random.whole(LOWEST_MAXIMUM, HIGHEST_MAXIMUM);
  const declared: Record<string, LimitInForce> = {};
  const rules: Rule[] = [
    {
      key_pattern: '[a-z]+-[1-9]',
      key_pattern_is_regex: true,
      name: `rules-${number}`,
      max_requests_per_window: draw(),
      window_millis: WINDOW_MILLIS,
    },
  ];
  for (const [sort, keys] of Object.entries(KEYS)) {
    const ofSort = draw();
    rules.push({
      key_pattern: `${sort}-\\d`,
      key_pattern_is_regex: true,
      max_requests_per_window: ofSort,
    });
    for (const [i, key] of keys.entries()) {
      const isSingle = random.chance(SINGLE_KEY);
      const maximum = isSingle ? draw() : ofSort;
      const mostHits = sort === 'limited' || sort === 'ordered' ? MOST_HITS : 1;
      const algorithm = drawAlgorithm(random, [mostHits, maximum], ALGORITHM_NAMES[i]);
      declared[key] = ownLimit(WINDOW_MILLIS, maximum, algorithm);
      rules.push({
        key_pattern: key,
        ...(isSingle && { max_requests_per_window: maximum }),
        ...algorithmFields(algorithm),
      });
    }
  }
  const limits = FURTHER.filter(() => random.chance(FURTHER_LIMIT)).map((limit) => {
    const maximum = draw();
    return { ...limit, maximum, algorithm: drawAlgorithm(random, [MOST_HITS, maximum]) };
  });
  for (const key of KEYS.limited) {
    for (const limit of limits) declared[limitOf(key, limit.name)] = limit;
  }
  rules.push({
    key_pattern: 'limited-\\d',
    key_pattern_is_regex: true,
    requests_can_hold: true,
    requests_can_pause: true,
    limits: limits.map(limitRule),
  });
  for (const [i, key] of KEYS.ordered.entries()) {
    const { rule, share } = drawOrder(random, i % 2 === 0 ? 'lanes' : 'fair', draw());
    rules.push({ key_pattern: key, ...rule });
    if (share) declared[limitOf(key, share.name)] = share;
  }
  return { rules, limits: declared };
}

/**
 * @param maximum of the limit that counts only some lanes, or each group apart, if there is one
 * @returns the fields of a rule, and this limit
 */
function drawOrder(
  random: Random,
  usual: 'lanes' | 'fair',
  maximum: number,
): { readonly rule: Rule; readonly share?: NamedLimit } {
  const kind = random.chance(UNUSUAL_ORDER) ? random.pick(['lanes', 'fair', 'list']) : usual;
  const weights = Object.fromEntries(GROUPS.map((name) => [name, random.whole(1, 4)]));
  const places = random.whole(10, 30);
  const lanes = random
    .shuffled(Object.keys(LANES))
    .filter(() => random.chance(EACH_LANE))
    .map((name) => ({ name, head_start_millis: Math.round(LANES[name]! / random.whole(1, 2)) }));
  const counted = lanes.slice(0, random.whole(1, 2)).map(({ name }) => name);
  const algorithm = drawAlgorithm(random, [MOST_HITS, maximum]);
  if (kind === 'list') return { rule: { queue: {} } };
  if (kind === 'fair' || lanes.length === 0) {
    const queue = { fair: true, max_requests_in_queue_per_group: places, weights };
    if (!random.chance(FURTHER_LIMIT)) return { rule: { queue } };
    const maxima = new Map([[GROUPS[0]!, random.whole(MOST_HITS, HIGHEST_MAXIMUM)]]);
    const steps = random.pick(STEPS);
    const tenant: NamedLimit = {
      ...{ ...TENANT, maximum, perGroup: { maxima } },
      algorithm: { name: 'sliding_window', steps },
    };
    return { rule: { queue, limits: [limitRule(tenant)] }, share: tenant };
  }
  if (!random.chance(FURTHER_LIMIT)) return { rule: { queue: { lanes } } };
  const share = { ...SHARE, maximum, algorithm, lanes: counted };
  return { rule: { queue: { lanes }, limits: [limitRule(share)] }, share };
}

/** @param bursts the least burst, which is enough for each check, and the greatest */
function drawAlgorithm(
  random: Random,
  bursts: readonly [number, number],
  usual?: AlgorithmName,
): Algorithm {
  const other = random.pick(ALGORITHM_NAMES);
  const name = usual === undefined || random.chance(UNUSUAL_ALGORITHM) ? other : usual;
  const burst = random.whole(...bursts);
  return algorithmOf(name, { steps: random.pick(STEPS), burst });
}

function algorithmFields(algorithm: NamedAlgorithm): Record<string, string | number> {
  if (algorithm.name === 'fixed_window') return { algorithm: algorithm.name };
  const { name, ...parameter } = algorithm;
  return { algorithm: name, ...parameter };
}

function limitRule(limit: NamedLimit): LimitRule {
  const { name, windowMillis, counts, keepsReleased, maximum, algorithm, lanes, perGroup } = limit;
  return {
    name,
    ...algorithmFields(algorithm),
    window_millis: windowMillis,
    [`max_${counts}_per_window`]: maximum,
    releases_return: !keepsReleased,
    ...(lanes && { lanes }),
    ...(perGroup && { per: 'group', maxima: Object.fromEntries(perGroup.maxima) }),
  };
}

/** The same, but that now and then a key is turned off. */
export function drawRulesWithZero(random: Random, number: number): DeclaredRules {
  const { rules, limits } = drawRules(random, number);
  if (!random.chance(TURNED_OFF)) return { rules, limits };
  const key = random.pick(ALL_KEYS);
  return {
    rules: [...rules, { key_pattern: key, max_requests_per_window: 0 }],
    limits: { ...limits, [key]: { ...limits[key]!, maximum: 0 } },
  };
}

/** Of which no beginning is right. */
export function asJson({ rules }: DeclaredRules): string {
  return JSON.stringify({ keys: rules }, undefined, 2);
}

export function asYaml({ rules }: DeclaredRules): string {
  return stringify({ keys: rules });
}

/** Texts that are no rules, made of right ones. */
export function broken(random: Random, declared: DeclaredRules): string {
  const text = asJson(declared);
  return random.pick([
    '',
    text.slice(0, random.whole(1, text.length - 1)),
    text.replace('"max_requests_per_window"', '"max_requests"'),
    text.replace('"max_requests_per_window": ', '"max_requests_per_window": -'),
    text.replace('[a-z]+', '([a-z]+'),
    text.replace(/"algorithm": "\w+"/, '"algorithm": "gcra"'),
    text.replace(/"algorithm": "\w+"/, '"algorithm": "fixed_window", "burst": 3'),
    text.replace(/"algorithm": "\w+"/, '"algorithm": "token_bucket", "steps": 2'),
    text.replace(/"algorithm": "\w+"/, '"calendar": "year"'),
    asYaml(declared).replace('name:', 'name'),
    'keys: *unknown',
    '\0',
  ]);
}
