/** They could break the line of the message, or change the terminal. */
const CONTROL_CHARACTERS = /\p{Cc}/gu;

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
    const inOneLine = problem.replace(CONTROL_CHARACTERS, escaped);
    super(`${file}:${line}:${column}: ${inOneLine}`);
    this.problem = inOneLine;
  }
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
