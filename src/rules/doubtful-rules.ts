import { type Rule } from './rule.js';
import type { RuleSet } from './rule-set.js';

/** A file may have thousands of rules with the same fault. */
const MAX_WARNINGS = 10;
/** Signs of an expression. A key that has them on purpose can be written as an expression. */
const LOOKS_LIKE_EXPRESSION = /^\^|\.[*+]|[*$]$/;
/** Keys that have nothing in common: an expression that matches all of them matches every key. */
const ALL_KINDS_OF_KEYS = ['0', 'zz', '~', 'A-b:c/d=e', ' é ', 'x'.repeat(500)];
/** The fields that only say which rule it is. */
export const NAMING: ReadonlySet<string> = new Set(['key_pattern', 'key_pattern_is_regex', 'name']);

/** Warnings of valid rules that probably mean something else than they say, each for one line of the log. */
export function doubtsAbout(set: RuleSet): string[] {
  const warnings = [...keysLikeExpressions(set), ...overridingRules(set)];
  const others = warnings.length - MAX_WARNINGS;
  if (others <= 0) return warnings;
  return [...warnings.slice(0, MAX_WARNINGS), `${others} more rules are doubtful in these ways`];
}

/** How messages name a rule. */
export function titleOf(
  { name, key_pattern: pattern, key_pattern_is_regex: isRegex }: Rule,
  index: number,
): string {
  const title = name === undefined ? '' : ` ${name}`;
  const kind = isRegex ? 'expression' : 'key';
  return `rule ${index + 1}${title}, ${kind} ${JSON.stringify(pattern)}`;
}

function keysLikeExpressions({ rules }: RuleSet): string[] {
  return rules.flatMap((rule, i) => {
    if (rule.key_pattern_is_regex || !LOOKS_LIKE_EXPRESSION.test(rule.key_pattern)) return [];
    return [
      `${titleOf(rule, i)}, matches no other key than that text; ` +
        'did you mean key_pattern_is_regex: true?',
    ];
  });
}

function overridingRules(set: RuleSet): string[] {
  return rulesForEveryKey(set).flatMap((index) => {
    const rule = set.rules[index];
    if (!rule) return [];
    const own = fieldsOf(rule);
    const overridden = set.rules
      .slice(0, index)
      .map((earlier) => fieldsOf(earlier).filter((field) => own.includes(field)))
      .filter((fields) => fields.length > 0);
    if (overridden.length === 0) return [];
    const fields = [...new Set(overridden.flat())].join(', ');
    const count = overridden.length === 1 ? '1 earlier rule' : `${overridden.length} earlier rules`;
    return [
      `${titleOf(rule, index)}, matches every key and overrides ${fields} of ${count}; ` +
        'later rules win: did you mean to put it first?',
    ];
  });
}

function rulesForEveryKey(set: RuleSet): number[] {
  const [first = [], ...others] = ALL_KINDS_OF_KEYS.map((key) =>
    set.matching(key).map(({ index }) => index),
  );
  return first.filter((index) => others.every((indexes) => indexes.includes(index)));
}

function fieldsOf(rule: Rule): string[] {
  return Object.keys(rule).filter((field) => !NAMING.has(field));
}
