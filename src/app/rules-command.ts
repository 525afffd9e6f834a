import { inOneLine } from '../common/texts.js';
import { readNamedFile, SettingsError } from '../config/named-file.js';
import { type Settings } from '../config/settings.js';
import { describeAlgorithm, kindOf } from '../limiter/kinds/kinds.js';
import { calendarOf, hasSettableWindow, type Limit, limitOfGroup } from '../limiter/limits.js';
import { DEFAULT_WEIGHT, type QueueOrder } from '../limiter/queue-order.js';
import { doubtsAbout, NAMING, titleOf } from '../rules/doubtful-rules.js';
import { measureMatching } from '../rules/matching-cost.js';
import { parseRules } from '../rules/parse-rules.js';
import { RuleSet } from '../rules/rule-set.js';
import type { KeyPolicy } from '../rules/policy.js';
import { defaultPolicy } from '../rules/rules.js';

/** At this cost a bulk request with 1000 new keys takes a second of CPU. */
const MAX_MATCHING_MILLIS = 1;

/** A command about rules, which runs instead of the service. */
export interface RulesCommand {
  /** The rules file; by default `CONFIG_FILE` of the settings. */
  readonly file: string | undefined;
  readonly key: string | undefined;
  /** Undefined: of no group in particular. */
  readonly group?: string | undefined;
}

/**
 * Checks a rules file, and explains what applies to a key.
 * @returns the text to print
 * @throws SettingsError for a file that can't be read, RulesError for one that is invalid
 */
export async function runRulesCommand(
  { file, key, group }: RulesCommand,
  settings: Settings,
): Promise<string> {
  const path = file ?? settings.CONFIG_FILE;
  if (path === undefined) {
    throw new SettingsError('CONFIG_FILE', 'nothing', 'the rules file to explain');
  }
  const text = readNamedFile(file === undefined ? 'CONFIG_FILE' : '--check-config', path);
  const rules = await RuleSet.load(parseRules(text, path), defaultPolicy(settings));
  return [
    `${path}: ${counted(rules.rules.length)}, digest ${rules.digest}`,
    ...doubtsAbout(rules).map((doubt) => `warning: ${doubt}`),
    ...(file === undefined ? [] : warnOfCost(rules)),
    ...(key === undefined ? [] : explain(rules, key, group)),
  ]
    .map(inOneLine)
    .join('\n');
}

/** A warning if rules are so costly that a request with many new keys delays all others. */
function warnOfCost({ rules }: RuleSet): string[] {
  const cost = measureMatching(rules);
  if (!cost || cost.millis <= MAX_MATCHING_MILLIS) return [];
  const rule = rules[cost.index];
  if (!rule) return [];
  return [
    `warning: a new key takes up to ${cost.millis.toFixed(1)} ms to match, more than ${MAX_MATCHING_MILLIS} ms; ` +
      `the most costly is ${titleOf(rule, cost.index)}`,
  ];
}

function explain(rules: RuleSet, key: string, group: string | undefined): string[] {
  const matches = rules.matching(key);
  const policy = rules.policyOf(key);
  return [
    `the key ${JSON.stringify(key)}: ${counted(matches.length)} ${matches.length === 1 ? 'applies' : 'apply, in this order'}`,
    ...matches.map(({ index, rule }) => {
      const effects = Object.entries(rule).filter(([field]) => !NAMING.has(field));
      return `  ${titleOf(rule, index)}: ${JSON.stringify(Object.fromEntries(effects))}`;
    }),
    ...describePolicy(policy),
    ...(group === undefined ? [] : describeGroup(policy, group)),
  ];
}

function counted(rules: number): string {
  return rules === 1 ? '1 rule' : `${rules} rules`;
}

function describePolicy(policy: KeyPolicy): string[] {
  const [own, ...further] = policy.limits;
  const settable = (isSettable: boolean, most: number): string =>
    isSettable ? `up to ${most}` : 'not by requests';
  const rate = settable(policy.requestsCanSetRate, policy.maxRequestsCeiling);
  const queue = settable(policy.requestsCanModQueue, policy.maxRequestsInQueueCeiling);
  const canSetWindow = policy.requestsCanSetWindow && hasSettableWindow(own);
  const window = settable(canSetWindow, policy.windowMillisCeiling);
  const hasAlgorithm = !kindOf(own.algorithm).hasBoundary;
  const corrections = policy.maxCorrectedHits ?? 'ten times the approvals per window';
  const holds = policy.requestsCanHold ? `up to ${policy.maxHoldMillis} ms` : 'none';
  return [
    `  window: ${windowText(own)}; to be set ${window}`,
    `  approvals per window: ${own.maximum}; to be set ${rate}`,
    ...(hasAlgorithm ? [`  algorithm: ${describeAlgorithm(own.algorithm)}`] : []),
    ...further.map(describeLimit),
    `  places in the queue: ${policy.maxRequestsInQueue}; to be set ${queue}`,
    ...(policy.queueOrder ? [`  ${orderText(policy.queueOrder)}`] : []),
    `  holds of approvals: ${holds}`,
    `  corrections of hits: up to ${corrections}`,
    ...(policy.requestsCanPause ? ['  pauses: without the scope configure'] : []),
    ...(policy.deniedTakesRest ? ['  denied checks take what is left of a window'] : []),
    ...(policy.maxWaitMillis > 0
      ? [`  checks of gateways wait for up to ${policy.maxWaitMillis} ms`]
      : []),
    ...(policy.isShadow ? ['  shadow mode: checks are never denied'] : []),
  ];
}

/** What a group has to itself. */
function describeGroup({ limits, queueOrder }: KeyPolicy, group: string): string[] {
  const title = `the group ${JSON.stringify(group)}`;
  if (queueOrder?.kind !== 'fair') return [`${title}: the key has no fair groups`];
  const own = limits.filter(({ perGroup }) => perGroup);
  return [
    `${title}: weight ${queueOrder.weights.get(group) ?? DEFAULT_WEIGHT}`,
    ...own.map((limit) => describeLimit({ ...limitOfGroup(limit, group), perGroup: undefined })),
  ];
}

function orderText(order: QueueOrder): string {
  const lanes = order.lanes?.map(({ name, headStartMillis }) =>
    headStartMillis === 0 ? name : `${name} with a head start of ${headStartMillis} ms`,
  );
  if (order.kind === 'lanes') return `lanes: ${lanes?.join(', ')}`;
  const { maxRequestsInQueuePerGroup: places, weights } = order;
  const each = places === undefined ? '' : `, up to ${places} waiters each`;
  const named = [...weights].map(([group, weight]) => `${JSON.stringify(group)} ${weight}`);
  const inside = lanes ? `; in each the lanes ${lanes.join(', ')}` : '';
  return `fair groups${each}${named.length === 0 ? '' : `; weights ${named.join(', ')}`}${inside}`;
}

/** A calendar, or a length. */
function windowText(limit: Limit): string {
  return calendarOf(limit) ? describeAlgorithm(limit.algorithm) : `${limit.windowMillis} ms`;
}

function describeLimit(limit: Limit): string {
  const { name, maximum, counts, algorithm, keepsReleased, lanes, perGroup } = limit;
  const kind = kindOf(algorithm).hasBoundary ? '' : `; ${describeAlgorithm(algorithm)}`;
  const releases = keepsReleased ? '; releases return nothing' : '';
  const only = lanes
    ? `; only of ${lanes.length === 1 ? 'the lane' : 'the lanes'} ${lanes.join(', ')}`
    : '';
  const maxima = [...(perGroup?.maxima ?? [])].map(
    ([group, of]) => `${JSON.stringify(group)} ${of}`,
  );
  const others = maxima.length > 0 ? `, of ${maxima.join(', ')}` : '';
  const each = perGroup ? `; for each group${others}` : '';
  return `  limit ${name}: ${maximum} ${counts} per ${windowText(limit)}${kind}${releases}${only}${each}`;
}
