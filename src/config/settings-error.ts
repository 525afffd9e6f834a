/** A setting that Sluice can't take. The message names the variable, its value, and what it takes. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';

  /**
   * @param got the value, fit to be shown
   * @param takes what it should have been, for the end of a sentence
   */
  constructor(variable: string, got: string, takes: string) {
    super(`${variable}: got ${got}, takes ${takes}`);
  }
}
