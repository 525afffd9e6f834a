import { inOneLine } from '../common/in-one-line.js';

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

  constructor(errors: readonly RulesError[]) {
    super(errors.map(({ message }) => message).join('\n'));
  }
}
