import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import { watchCertificates } from './certificates.js';
import type { ConnectionSettings } from './connection-settings.js';
import { watchCredentials } from './watched-credentials.js';

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
  const credentials = await watchCredentials(settings, logger);
  const { values } = credentials;
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
      credentials.close();
    },
  };
}
