import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';

import { pathText } from '../common/path-text.js';
import { RulesError } from './rules-error.js';

/** A few lines of nested aliases would expand to more than fits into memory. */
const MAX_ALIASES = 100;

/** Where a value is in a file. */
export type Path = readonly (string | number)[];

/** A file that has been read. */
export interface ReadFile<Value> {
  readonly value: Value;
  /** The line of the value at a path, or of its nearest existing parent. From 1 on. */
  readonly lineOf: (path: Path) => number;
  /** An error at a path. @param problem follows the path in the message */
  readonly errorIn: (path: Path, problem: string) => RulesError;
}

/**
 * Reads YAML, which includes JSON.
 * @param file names the text in errors
 * @throws RulesError for the first error of the text, and for the first value that is not as `schema` says
 */
export function readYaml<Value>(
  text: string,
  file: string,
  schema: z.ZodType<Value>,
): ReadFile<Value> {
  const lines = new LineCounter();
  const positionOf = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const errorAt = (offset: number, problem: string): RulesError => {
    const { line, column } = positionOf(offset);
    return new RulesError(file, line, column, problem);
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
  const result = schema.safeParse(value);
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
  return {
    value: result.data,
    lineOf: (path) => positionOf(offsetOf(document, path)).line,
    errorIn,
  };
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
