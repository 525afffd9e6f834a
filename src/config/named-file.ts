import { readFileSync } from 'node:fs';

import { SettingsError } from './settings-error.js';

/**
 * The content of the file that a setting names, as text.
 * @throws SettingsError if it can't be read
 */
export function readNamedFile(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(variable, path, error);
  }
}

/** The error that says why the file of a setting can't be read. */
export function unreadable(variable: string, path: string, error: unknown): SettingsError {
  const { code = 'unreadable' } = error as NodeJS.ErrnoException;
  return new SettingsError(variable, `${JSON.stringify(path)} (${code})`, 'a file to read');
}
