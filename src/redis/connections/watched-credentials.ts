import type { Logger } from 'pino';

import { secretIn } from '../../config/secret-files.js';
import type { Settings } from '../../config/settings.js';
import type { NamedFile } from '../../config/named-file.js';
import { WatchedFiles } from '../../config/watched-files.js';
import { LiveText } from './live-text.js';

const NAMES = [
  'REDIS_USERNAME',
  'REDIS_PASSWORD',
  'REDIS_SENTINEL_USERNAME',
  'REDIS_SENTINEL_PASSWORD',
] as const;
type Name = (typeof NAMES)[number];

/** Credentials. The ones from files follow their files. */
export interface WatchedCredentials {
  readonly values: Readonly<Partial<Record<Name, string | LiveText | undefined>>>;
  /** Stops watching the files. */
  close(): void;
}

/**
 * The users and passwords for Redis, kept up to date with their files.
 * @throws SettingsError for a file that can't be read, or is empty
 */
export async function watchCredentials(
  settings: Pick<Settings, Name | 'secretFiles'>,
  logger: Logger,
): Promise<WatchedCredentials> {
  const fromFiles = NAMES.filter((name) => settings.secretFiles[name] !== undefined);
  if (fromFiles.length === 0) return { values: settings, close: () => undefined };

  const files = fromFiles.map((name): NamedFile => ({
    variable: `${name}_FILE`,
    path: settings.secretFiles[name] ?? '',
    ...(name.endsWith('PASSWORD') && { isSecret: true }),
  }));
  const watched = await WatchedFiles.open(
    {
      what: 'credentials for Redis',
      files,
      parse: (contents) => files.map((file, i) => secretIn(file, String(contents[i]))),
      describe: () => ({ variables: files.map(({ variable }) => variable) }),
    },
    logger,
  );
  const live: Partial<Record<Name, LiveText>> = Object.fromEntries(
    fromFiles.map((name, i) => [name, new LiveText(() => watched.current[i] ?? '')]),
  );
  return {
    values: { ...settings, ...live },
    close: () => {
      watched.close();
    },
  };
}
