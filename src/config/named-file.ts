import { readFileSync } from 'node:fs';

import { inOneLine } from '../common/texts.js';

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

/** A file, and the setting that names it. */
export interface NamedFile {
  readonly variable: string;
  readonly path: string;
  /** Whether a warning says that every user of the machine may read it. */
  readonly isSecret?: true;
}

/** The content of the file that a setting names, as text. @throws SettingsError if it can't be read */
export function readNamedFile(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(variable, path, error);
  }
}

export function unreadable(variable: string, path: string, error: unknown): SettingsError {
  const { code = 'unreadable' } = error as NodeJS.ErrnoException;
  return new SettingsError(variable, `${JSON.stringify(path)} (${code})`, 'a file to read');
}
