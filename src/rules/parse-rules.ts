import { problemOfPattern } from './key-patterns.js';
import { type Path, readYaml } from './positioned-yaml.js';
import { type Rule, rulesSchema } from './rule.js';

const MAX_RULES = 10_000;

/**
 * The rules in a text of YAML, which includes JSON.
 * @param file names the text in errors
 * @throws RulesError for the first error
 */
export function parseRules(text: string, file = 'rules'): readonly Rule[] {
  const { value, yaml } = readYaml(text, file, rulesSchema);
  const { keys: rules } = value;
  const clash = pathOfClash(rules);
  if (clash)
    throw yaml.errorIn(clash, 'must not be the name of a rule, by which clients know its maximum');
  if (rules.length > MAX_RULES)
    throw yaml.errorIn(['keys'], `must have at most ${MAX_RULES} rules`);
  for (const [i, rule] of rules.entries()) {
    const problem = problemOfPattern(rule);
    if (problem !== undefined) throw yaml.errorIn(['keys', i, 'key_pattern'], problem);
  }
  return rules;
}

/** Where a limit has the name of a rule. Headers, denials and metrics would not tell the two apart. */
function pathOfClash(rules: readonly Rule[]): Path | undefined {
  const names = new Set(rules.flatMap(({ name = [] }) => name));
  for (const [i, { limits = [] }] of rules.entries()) {
    const index = limits.findIndex(({ name }) => names.has(name));
    if (index >= 0) return ['keys', i, 'limits', index, 'name'];
  }
  return undefined;
}
