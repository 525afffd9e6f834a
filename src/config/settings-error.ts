import { inOneLine } from '../common/in-one-line.js';

/** A setting with an invalid value. The message names the variable, its value, and the values it takes. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';

  /**
   * @param got the value, fit to be shown
   * @param takes the values that the variable takes, for the end of a sentence
   */
  constructor(variable: string, got: string, takes: string) {
    super(inOneLine(`${variable}: got ${got}, takes ${takes}`));
  }
}
