import { type NamedFile, readNamedFile, SettingsError } from './named-file.js';

/** The settings that may contain a secret. They are never shown. Each may come from a file instead. */
export const SECRETS: readonly string[] = [
  'REDIS_URL',
  'REDIS_USERNAME',
  'REDIS_PASSWORD',
  'REDIS_SENTINEL_USERNAME',
  'REDIS_SENTINEL_PASSWORD',
];

/** The path of the file of each secret that has one, by the secret's name. */
export type SecretFiles = Readonly<Partial<Record<string, string>>>;

/**
 * Takes each of {@link SECRETS} from the file that `<NAME>_FILE` names, as secrets are mounted into
 * containers. One line break at the end of the file is ignored.
 * @returns all settings, and the paths of the files
 * @throws SettingsError if a file can't be read or is empty, or both are given
 */
export function readSecretFiles(given: Readonly<Record<string, string>>) {
  const settings = { ...given };
  const secretFiles: Partial<Record<string, string>> = {};
  for (const name of SECRETS) {
    const variable = `${name}_FILE`;
    const path = given[variable];
    if (path === undefined) continue;
    if (name in given) {
      throw new SettingsError(variable, JSON.stringify(path), `nothing if ${name} is set`);
    }
    settings[name] = secretIn({ variable, path }, readNamedFile(variable, path));
    secretFiles[name] = path;
  }
  return { settings, secretFiles };
}

/** The secret in the content of a file. @throws SettingsError if there is none */
export function secretIn({ variable, path }: NamedFile, content: string): string {
  const secret = content.replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new SettingsError(variable, `${JSON.stringify(path)} (empty)`, 'a file with the secret');
}
