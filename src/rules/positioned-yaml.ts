import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';

import { inOneLine, pathText } from '../common/texts.js';

/** An error in a rules file. The message says where it is, as compilers do, and what was expected. */
export class RulesError extends Error {
  override readonly name = 'RulesError';
  readonly problem: string;

  /**
   * @param file as the user has named it
   * @param line from 1 on
   * @param column from 1 on
   */
  constructor(
    file: string,
    readonly line: number,
    readonly column: number,
    problem: string,
  ) {
    super(inOneLine(`${file}:${line}:${column}: ${problem}`));
    this.problem = inOneLine(problem);
  }
}

/** All errors in files, one on each line. */
export class RulesErrors extends Error {
  override readonly name = 'RulesErrors';

  constructor(readonly errors: readonly RulesError[]) {
    super(errors.map(({ message }) => message).join('\n'));
  }
}

/** A few lines of nested aliases would expand to more than fits into memory. */
const MAX_ALIASES = 100;

export const YAML_OPTIONS = { prettyErrors: false, uniqueKeys: true, stringKeys: true } as const;

/** Where a value is in a file. */
export type Path = readonly (string | number)[];

/** A document of YAML, which includes JSON, and where its values are. */
export class PositionedYaml {
  /**
   * @param lines of the whole text
   * @param file names the text in errors
   */
  constructor(
    readonly document: Document,
    private readonly lines: LineCounter,
    private readonly file: string,
  ) {}

  /** A warning for a terminal, with the line of the value at a path, or of its nearest existing parent. */
  warningAt(path: Path, problem: string): string {
    const { line } = this.errorIn(path, problem);
    return inOneLine(`${this.file}:${line}: warning: ${problem}`);
  }

  /** An error at a path. @param problem follows the path in the message */
  errorIn(path: Path, problem: string): RulesError {
    return this.errorAt(
      offsetOf(this.document, path),
      `${pathText(path) || 'the file'} ${problem}`,
    );
  }

  errorAt(offset: number, problem: string): RulesError {
    const { line, col } = this.lines.linePos(offset);
    return new RulesError(this.file, Math.max(1, line), Math.max(1, col), problem);
  }

  /**
   * Reads what the document says.
   * @param valueOf is called if it is YAML
   * @throws RulesErrors for what is no YAML, or for all that is not as `schema` says, unknown fields first: a misspelt field
   *     can be why another is missing
   */
  read<Value>(schema: z.ZodType<Value>, valueOf: () => unknown): Value {
    const mistakes = [...this.document.errors, ...this.document.warnings].map(({ pos, message }) =>
      // The first sentence.
      this.errorAt(pos[0], message.replace(/:?\n[\s\S]*$/, '')),
    );
    if (mistakes.length > 0) throw new RulesErrors(mistakes);
    const { success, data, error } = schema.safeParse(valueOf());
    if (success) return data;
    const { issues } = error;
    const unknown = issues.flatMap((issue) => {
      if (issue.code !== 'unrecognized_keys') return [];
      const path = issue.path as Path;
      return issue.keys.map((field, i) =>
        this.errorAt(
          offsetOfField(this.document, path, field),
          // The message is about the first.
          i === 0 ? issue.message : `unknown field ${field}`,
        ),
      );
    });
    const others = issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys' ? [] : this.errorIn(issue.path as Path, issue.message),
    );
    throw new RulesErrors([...unknown, ...others]);
  }
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
): { readonly value: Value; readonly yaml: PositionedYaml } {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { ...YAML_OPTIONS, lineCounter });
  const yaml = new PositionedYaml(document, lineCounter, file);
  const valueOf = (): unknown => {
    try {
      return document.toJS({ maxAliasCount: MAX_ALIASES });
    } catch (error) {
      // An alias without an anchor, or too many aliases.
      throw yaml.errorAt(0, (error as Error).message);
    }
  };
  try {
    return { value: yaml.read(schema, valueOf), yaml };
  } catch (error) {
    throw error instanceof RulesErrors ? error.errors[0] : error;
  }
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
