import { groupBy } from '../../common/collections.js';
import { UNIT_MILLIS } from '../../grpc/messages.js';
import { BOUNDS } from '../../limiter/bounds.js';
import { problemOfPattern } from '../../rules/key-patterns.js';
import { type RulesError, RulesErrors } from '../../rules/positioned-yaml.js';
import type { Rule } from '../../rules/rule.js';
import { DescriptorPattern, type Kind, kindOf } from './descriptor-patterns.js';
import type { LimitsFile, LocatedDescriptor } from './limits-file.js';

/** A rule, with only the fields that it sets. */
export type ImportedRule = Pick<Rule, 'key_pattern'> & Partial<Rule>;

/** What is not limited approves a number that nobody reaches. Its window is short, so that approvals take little memory. */
const UNLIMITED = {
  name: 'unlimited',
  max_requests_per_window: BOUNDS.maxRequests.max,
  window_millis: 1000,
};
const NAME_LENGTH = 64;
const NOT_IN_NAMES = /[^\w.:/-]/g;

/**
 * The rules that limit what the files limit. A later rule wins, so that rules go from the least exact descriptor to the most exact.
 * Envoy's service looks no further once it has found a descriptor for an entry: so one that is named more exactly hides what
 * others limit.
 * @throws RulesErrors for what the files have, for two descriptors with the same entries, and for one whose expression would be too
 *   long
 */
export function rulesOfLimits(files: readonly LimitsFile[]) {
  const rules: ImportedRule[] = [];
  const domains = files.flatMap((file) => file.domains);
  const warnings = files.flatMap((file) => file.warnings);
  const errors = files.flatMap((file) => file.errors);
  const setsShadow = domains.some(({ descriptors }) => hasAny(descriptors, 'shadow_mode'));

  const add = (rule: ImportedRule, isShadow: boolean, of?: LocatedDescriptor): void => {
    const problem = problemOfPattern(rule);
    if (problem !== undefined && of) {
      errors.push(of.yaml.errorIn(of.path, `has keys whose pattern ${problem}`));
    }
    rules.push(setsShadow ? { ...rule, shadow: isShadow } : rule);
  };

  const addDescriptor = (
    one: LocatedDescriptor,
    parent: DescriptorPattern,
    parentName: string,
    // Whether a descriptor with the same entry, named less exactly, has a limit, or one below it has.
    before: { readonly hasOwn: boolean; readonly hasDeeper: boolean },
  ): void => {
    const { key, value } = one;
    const pattern = parent.with({ key, value });
    const name = `${parentName}.${key}${value === '' ? '' : `_${value}`}`;
    warnings.push(...warningsAbout(one, pattern));
    if (one.rate_limit) {
      const own = pattern.own(Boolean(one.rate_limit.unit));
      add({ ...own, ...limitOf(one.rate_limit, name) }, one.shadow_mode === true, one);
    } else if (before.hasOwn) {
      add({ ...pattern.own(false), ...UNLIMITED }, false, one);
    }
    if (before.hasDeeper) add({ ...pattern.deeper, ...UNLIMITED }, false, one);
    addAll(one.children, pattern, name);
  };

  const addAll = (
    descriptors: readonly LocatedDescriptor[],
    parent: DescriptorPattern,
    parentName: string,
  ): void => {
    errors.push(...twinsIn(descriptors));
    for (const ofKey of groupBy(descriptors, ({ key }) => key)) {
      const of = (kind: Kind) => ofKey.filter((one) => kindOf(one) === kind);
      const before = { hasOwn: false, hasDeeper: false };
      for (const one of [...of('any'), ...of('wildcard').toReversed()]) {
        addDescriptor(one, parent, parentName, before);
        before.hasOwn ||= Boolean(one.rate_limit);
        before.hasDeeper ||= hasAny(one.children, 'rate_limit');
      }
      for (const one of of('exact')) addDescriptor(one, parent, parentName, before);
    }
  };

  for (const domain of new Set(domains.map((one) => one.domain))) {
    const pattern = new DescriptorPattern(domain);
    // What no descriptor limits is not limited.
    add({ ...pattern.deeper, ...UNLIMITED }, false);
    addAll(
      domains.flatMap((one) => (one.domain === domain ? one.descriptors : [])),
      pattern,
      domain,
    );
  }
  if (errors.length > 0) throw new RulesErrors(errors);
  return { rules, warnings };
}

function limitOf(
  { unit, requests_per_unit: requests, name }: NonNullable<LocatedDescriptor['rate_limit']>,
  path: string,
): Omit<ImportedRule, 'key_pattern'> {
  const named = { name: (name ?? path).replace(NOT_IN_NAMES, '-').slice(0, NAME_LENGTH) };
  if (!unit) return { ...UNLIMITED, ...named };
  return {
    ...named,
    max_requests_per_window: Math.min(requests ?? 0, BOUNDS.maxRequests.max),
    // Only its days are those of a calendar: its weeks begin on Thursdays, and its months have 30 days.
    ...(unit === 'DAY' ? { calendar: 'day' } : { window_millis: UNIT_MILLIS[unit] }),
  };
}

function twinsIn(descriptors: readonly LocatedDescriptor[]): RulesError[] {
  const seen = new Set<string>();
  return descriptors.flatMap(({ key, value, path, yaml }) => {
    const entry = JSON.stringify([key, value]);
    if (!seen.has(entry)) {
      seen.add(entry);
      return [];
    }
    return yaml.errorIn(path, 'has the key and the value of another descriptor');
  });
}

/** Whether a descriptor, or one below it, has a field that is set. */
function hasAny(
  descriptors: readonly LocatedDescriptor[],
  field: 'rate_limit' | 'shadow_mode',
): boolean {
  return descriptors.some((one) => Boolean(one[field]) || hasAny(one.children, field));
}

/** The fields without a counterpart, and what happens instead. */
const WITHOUT_COUNTERPART = {
  replaces: 'a request is checked against the limits of all its descriptors',
  quota_mode: 'the limit denies like any other',
  share_threshold: 'each value that the wildcard matches has a limit of its own',
  detailed_metric: 'metrics are counted by rule',
  value_to_metric: 'metrics are counted by rule',
  metadata: 'answers carry none',
};

function warningsAbout(descriptor: LocatedDescriptor, pattern: DescriptorPattern): string[] {
  const { path, yaml, key, rate_limit: limit } = descriptor;
  const fields = { ...descriptor, replaces: (limit?.replaces ?? []).length > 0 };
  const problems = Object.entries(WITHOUT_COUNTERPART)
    .filter(([name]) => Boolean(fields[name as keyof typeof WITHOUT_COUNTERPART]))
    .map(([name, instead]) => `${name} has no counterpart: ${instead}`);
  if (key.includes('*')) {
    problems.push(
      'a wildcard in a key has no counterpart: the rule is for the key with that character',
    );
  }
  const { max } = BOUNDS.maxRequests;
  if ((limit?.requests_per_unit ?? 0) > max) {
    problems.push(`requests_per_unit becomes ${max}, the most that a rule may have`);
  }
  if (limit?.unit && !pattern.limitsLongValues) {
    problems.push(
      'long values may pass without this limit: its own texts are so long that a key, of 512 bytes, has too little of them',
    );
  }
  return problems.map((problem) => yaml.warningAt(path, problem));
}
