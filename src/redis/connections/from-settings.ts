import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

import type { Logger } from 'pino';

import { type NamedFile, SettingsError } from '../../config/named-file.js';
import { secretIn } from '../../config/secret-files.js';
import type { Settings } from '../../config/settings.js';
import { WatchedFiles } from '../../config/watched-files.js';
import { type ConnectionSettings, liveText, type TlsSettings } from './connection-settings.js';

const CREDENTIALS = {
  username: 'REDIS_USERNAME',
  password: 'REDIS_PASSWORD',
  sentinelUsername: 'REDIS_SENTINEL_USERNAME',
  sentinelPassword: 'REDIS_SENTINEL_PASSWORD',
} as const;
type Credentials = Pick<ConnectionSettings, keyof typeof CREDENTIALS>;

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
  const { credentials, stopWatching } = await watchCredentials(settings, logger);
  return {
    mode: settings.REDIS_MODE,
    urls,
    sentinelMaster: settings.REDIS_SENTINEL_MASTER,
    ...credentials,
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
): Promise<{ credentials: Credentials; stopWatching: () => void }> {
  const names = Object.entries(CREDENTIALS);
  const given = Object.fromEntries(names.map(([field, name]) => [field, settings[name]]));
  const fromFiles = names.filter(([, name]) => settings.secretFiles[name] !== undefined);
  if (fromFiles.length === 0) return { credentials: given, stopWatching: () => undefined };

  const files = fromFiles.map(([, name]): NamedFile => ({
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
  const live = Object.fromEntries(
    fromFiles.map(([field], i) => [field, liveText(() => watched.current[i] ?? '')]),
  );
  return { credentials: { ...given, ...live }, stopWatching: () => watched.close() };
}

const CA = 'REDIS_TLS_CA_FILE';
const CERTIFICATE = 'REDIS_TLS_CERT_FILE';
const KEY = 'REDIS_TLS_KEY_FILE';

/** The TLS settings that come from files, as PEM. */
type Certificates = Pick<TlsSettings, 'ca' | 'cert' | 'key'>;

/**
 * The TLS settings for Redis: one object, which is kept up to date with their files.
 * @throws SettingsError for a file that can't be read, or is wrong
 */
async function watchCertificates(
  settings: Settings,
  logger: Logger,
): Promise<{ tls: TlsSettings; close: () => void }> {
  const servername = settings.REDIS_TLS_SERVER_NAME;
  const tls: TlsSettings = servername === undefined ? {} : { servername };
  const files = ([CA, CERTIFICATE, KEY] as const).flatMap((variable): NamedFile[] => {
    const path = settings[variable];
    return path === undefined ? [] : [{ variable, path }];
  });
  if (files.length === 0) return { tls, close: () => undefined };

  const watched = await WatchedFiles.open(
    {
      what: 'certificates for Redis',
      files,
      parse: (contents) => parse(files, contents),
      describe: ({ ca, cert }) => ({
        ...(ca !== undefined && { authority: described(ca) }),
        ...(cert !== undefined && { certificate: described(cert) }),
      }),
    },
    logger,
  );
  const take = (certificates: Certificates): void => {
    Object.assign(tls, certificates);
  };
  take(watched.current);
  watched.onReload(take);
  return {
    tls,
    close: () => watched.close(),
  };
}

/** @throws SettingsError for the first file whose content is wrong */
function parse(files: readonly NamedFile[], contents: readonly Buffer[]): Certificates {
  /** The result of `make` for a file's content; undefined if the settings name no such file. */
  const read = <T>(variable: string, takes: string, make: (pem: string) => T): T | undefined => {
    const index = files.findIndex((file) => file.variable === variable);
    const [file, content] = [files[index], contents[index]];
    if (!file || !content) return undefined;
    try {
      return make(content.toString());
    } catch {
      throw new SettingsError(variable, JSON.stringify(file.path), takes);
    }
  };
  const ca = read(CA, 'PEM certificates of authorities', checkedAuthorities);
  const takesPair = 'a PEM certificate, and those of its chain after it';
  const cert = read(CERTIFICATE, takesPair, checkedChain);
  const takesKey = `the PEM private key of the certificate in ${CERTIFICATE}, without a passphrase`;
  const key = read(KEY, takesKey, (pem) => {
    // A secure context would accept a pair of two kinds, such as an RSA key with an EC certificate.
    if (new X509Certificate(cert ?? '').checkPrivateKey(createPrivateKey(pem))) return pem;
    throw new Error('the key of another certificate');
  });
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  };
}

/** @throws Error if a part of the text is no certificate: a secure context would accept fewer authorities */
function checkedAuthorities(pem: string): string {
  const rest = pem.match(/-----BEGIN CERTIFICATE-----[^-]*(-----END CERTIFICATE-----)?/g) ?? [];
  for (const each of [pem, ...rest]) new X509Certificate(each);
  return pem;
}

/** @throws Error if the text is no certificate, or the chain after the first is wrong */
function checkedChain(pem: string): string {
  createSecureContext({ cert: pem });
  return pem;
}

function described(pem: string): { subject: string; validTo: string } {
  const { subject, validTo } = new X509Certificate(pem);
  return { subject, validTo };
}
