/** An error in a rules file. The message says where it is and what was expected. */
export class RulesError extends Error {
  override readonly name = 'RulesError';

  /**
   * @param line from 1 on
   * @param column from 1 on
   * @param problem for the end of a sentence
   */
  constructor(
    readonly line: number,
    readonly column: number,
    readonly problem: string,
  ) {
    super(`line ${line}, column ${column}: ${problem}`);
  }
}
