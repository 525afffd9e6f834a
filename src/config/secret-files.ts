import { readNamedFile } from './named-file.js';
import { SettingsError } from './settings-error.js';

/** The settings that may hold a secret. They are never shown, and each may come from a file instead. */
export const SECRETS: readonly string[] = [
  'REDIS_URL',
  'REDIS_USERNAME',
  'REDIS_PASSWORD',
  'REDIS_SENTINEL_USERNAME',
  'REDIS_SENTINEL_PASSWORD',
];

/**
 * Takes each of {@link SECRETS} from the file that `<NAME>_FILE` names, as secrets are mounted into
 * containers. One line break at the end of the file is ignored.
 * @throws SettingsError where a file can't be read or is empty, or both are given
 */
export function readSecretFiles(given: Readonly<Record<string, string>>): Record<string, string> {
  const settings = { ...given };
  for (const name of SECRETS) {
    const variable = `${name}_FILE`;
    const path = given[variable];
    if (path === undefined) continue;
    if (name in given) {
      throw new SettingsError(variable, JSON.stringify(path), `nothing where ${name} is set`);
    }
    settings[name] = readSecret(variable, path);
  }
  return settings;
}

function readSecret(variable: string, path: string): string {
  const secret = readNamedFile(variable, path).replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new SettingsError(variable, `${JSON.stringify(path)} (empty)`, 'a file with the secret');
}
