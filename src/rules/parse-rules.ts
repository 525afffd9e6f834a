import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';

import { pathText } from '../common/path-text.js';
import { problemOfPattern } from './key-patterns.js';
import { type Rule, rulesSchema } from './rule.js';
import { RulesError } from './rules-error.js';

/** A few lines of nested aliases would expand to more than fits into memory. */
const MAX_ALIASES = 100;
const MAX_RULES = 10_000;

type Path = readonly (string | number)[];

/**
 * The rules in a text of YAML, which includes JSON.
 * @param file names the text in errors
 * @throws RulesError for the first error
 */
export function parseRules(text: string, file = 'rules'): readonly Rule[] {
  const lines = new LineCounter();
  const errorAt = (offset: number, problem: string): RulesError => {
    const { line, col } = lines.linePos(offset);
    return new RulesError(file, Math.max(1, line), Math.max(1, col), problem);
  };
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
  });
  const [mistake] = [...document.errors, ...document.warnings];
  if (mistake) throw errorAt(mistake.pos[0], firstSentence(mistake.message));
  const errorIn = (path: Path, problem: string): RulesError =>
    errorAt(offsetOf(document, path), `${pathText(path) || 'the file'} ${problem}`);

  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    // An alias without an anchor, or too many aliases.
    throw errorAt(0, (error as Error).message);
  }
  const result = rulesSchema.safeParse(value);
  if (!result.success) {
    const { issues } = result.error;
    // A misspelt field can be why another is missing.
    const unknown = issues.find((issue) => issue.code === 'unrecognized_keys');
    if (unknown) {
      const offset = offsetOfField(document, unknown.path as Path, unknown.keys[0]);
      throw errorAt(offset, unknown.message);
    }
    const { path = [], message = 'is wrong' } = issues[0] ?? {};
    throw errorIn(path as Path, message);
  }
  const { keys: rules } = result.data;
  const clash = pathOfClash(rules);
  if (clash)
    throw errorIn(clash, 'must not be the name of a rule, by which clients know its maximum');
  if (rules.length > MAX_RULES) throw errorIn(['keys'], `must have at most ${MAX_RULES} rules`);
  for (const [i, { key_pattern: pattern, key_pattern_is_regex: isRegex }] of rules.entries()) {
    const problem = problemOfPattern({ pattern, isRegex });
    if (problem !== undefined) throw errorIn(['keys', i, 'key_pattern'], problem);
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

/** The offset of the node at a path, or of its nearest existing parent. */
function offsetOf(document: Document, path: Path): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return document.contents?.range?.[0] ?? 0;
}

/** The offset of a field's name in the object at a path, or else of the object. */
function offsetOfField(document: Document, path: Path, field?: string): number {
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  const items = isMap(node) ? node.items : [];
  const names = items.map(({ key }) => key).filter((key) => isScalar(key));
  return names.find(({ value }) => value === field)?.range?.[0] ?? offsetOf(document, path);
}

function firstSentence(message: string): string {
  return message.replace(/:?\n[\s\S]*$/, '');
}
