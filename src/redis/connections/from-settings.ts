import { readNamedFile } from '../../config/named-file.js';
import type { Settings } from '../../config/settings.js';
import type { ConnectionSettings, TlsSettings } from './connection-settings.js';

/**
 * The connection settings in the settings of the service.
 * @param urls those in REDIS_URL, at least one
 * @param name the connections' name in CLIENT LIST
 * @throws SettingsError where a file that the settings name can't be read
 */
export function connectionSettingsFrom(
  settings: Settings,
  urls: readonly string[],
  name: string,
): ConnectionSettings {
  const [firstUrl = ''] = urls;
  const databaseInUrl = Number(new URL(firstUrl).pathname.slice(1));
  return {
    mode: settings.REDIS_MODE,
    urls,
    sentinelMaster: settings.REDIS_SENTINEL_MASTER,
    username: settings.REDIS_USERNAME,
    password: settings.REDIS_PASSWORD,
    sentinelUsername: settings.REDIS_SENTINEL_USERNAME,
    sentinelPassword: settings.REDIS_SENTINEL_PASSWORD,
    database: settings.REDIS_DATABASE ?? databaseInUrl,
    tls: firstUrl.startsWith('rediss://') ? tlsSettingsFrom(settings) : undefined,
    timeoutMillis: settings.STORE_TIMEOUT_MILLIS,
    name,
  };
}

function tlsSettingsFrom(settings: Settings): TlsSettings {
  return {
    ca: contentOf(settings, 'REDIS_TLS_CA_FILE'),
    cert: contentOf(settings, 'REDIS_TLS_CERT_FILE'),
    key: contentOf(settings, 'REDIS_TLS_KEY_FILE'),
    servername: settings.REDIS_TLS_SERVER_NAME,
  };
}

function contentOf(
  settings: Settings,
  name: 'REDIS_TLS_CA_FILE' | 'REDIS_TLS_CERT_FILE' | 'REDIS_TLS_KEY_FILE',
): string | undefined {
  const path = settings[name];
  return path === undefined ? undefined : readNamedFile(name, path);
}
