import type { Logger } from 'pino';

import type { NamedFile } from '../../config/named-file.js';
import { secretIn } from '../../config/secret-files.js';
import type { Settings } from '../../config/settings.js';
import { WatchedFiles } from '../../config/watched-files.js';
import { watchCertificates } from './certificates.js';
import { type ConnectionSettings, LiveText } from './connection-settings.js';

const CREDENTIALS = [
  'REDIS_USERNAME',
  'REDIS_PASSWORD',
  'REDIS_SENTINEL_USERNAME',
  'REDIS_SENTINEL_PASSWORD',
] as const;
type Credentials = Partial<Record<(typeof CREDENTIALS)[number], string | LiveText | undefined>>;

/**
 * The connection settings in the settings of the service. Certificates and credentials from files are watched: a new
 * connection takes their contents of that moment.
 * @param urls those in REDIS_URL, at least one
 * @param name the connections' name in CLIENT LIST
 * @throws SettingsError if a file that the settings name can't be read, or is wrong
 */
export async function connectionSettingsFrom(
  settings: Settings,
  urls: readonly string[],
  name: string,
  logger: Logger,
): Promise<ConnectionSettings> {
  const [firstUrl = ''] = urls;
  const databaseInUrl = Number(new URL(firstUrl).pathname.slice(1));
  const certificates = firstUrl.startsWith('rediss://')
    ? await watchCertificates(settings, logger)
    : undefined;
  const { values, stopWatching } = await watchCredentials(settings, logger);
  return {
    mode: settings.REDIS_MODE,
    urls,
    sentinelMaster: settings.REDIS_SENTINEL_MASTER,
    username: values.REDIS_USERNAME,
    password: values.REDIS_PASSWORD,
    sentinelUsername: values.REDIS_SENTINEL_USERNAME,
    sentinelPassword: values.REDIS_SENTINEL_PASSWORD,
    database: settings.REDIS_DATABASE ?? databaseInUrl,
    tls: certificates?.tls,
    timeoutMillis: settings.STORE_TIMEOUT_MILLIS,
    name,
    stopWatching: () => {
      certificates?.close();
      stopWatching();
    },
  };
}

/**
 * The users and passwords for Redis. The ones from files are kept up to date with these.
 * @throws SettingsError for a file that can't be read, or is empty
 */
async function watchCredentials(
  settings: Settings,
  logger: Logger,
): Promise<{ readonly values: Credentials; readonly stopWatching: () => void }> {
  const fromFiles = CREDENTIALS.filter((name) => settings.secretFiles[name] !== undefined);
  if (fromFiles.length === 0) return { values: settings, stopWatching: () => undefined };

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
  const live: Credentials = Object.fromEntries(
    fromFiles.map((name, i) => [name, new LiveText(() => watched.current[i] ?? '')]),
  );
  return {
    values: { ...settings, ...live },
    stopWatching: () => {
      watched.close();
    },
  };
}
