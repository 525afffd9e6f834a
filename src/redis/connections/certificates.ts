import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import { SettingsError } from '../../config/settings-error.js';
import type { NamedFile } from '../../config/named-file.js';
import { WatchedFiles } from '../../config/watched-files.js';
import type { TlsSettings } from './connection-settings.js';

const CA = 'REDIS_TLS_CA_FILE';
const CERTIFICATE = 'REDIS_TLS_CERT_FILE';
const KEY = 'REDIS_TLS_KEY_FILE';

/** The TLS settings that come from files, as PEM. */
type Certificates = Pick<TlsSettings, 'ca' | 'cert' | 'key'>;
type CertificateSettings = Pick<
  Settings,
  typeof CA | typeof CERTIFICATE | typeof KEY | 'REDIS_TLS_SERVER_NAME'
>;

/** TLS settings that follow their files. */
export interface WatchedTls {
  /** Always the same object. A new connection takes its contents of that moment. */
  readonly tls: TlsSettings;
  /** Stops watching the files. */
  close(): void;
}

/**
 * The TLS settings for Redis, kept up to date with their files.
 * @throws SettingsError for a file that can't be read, or is wrong
 */
export async function watchCertificates(
  settings: CertificateSettings,
  logger: Logger,
): Promise<WatchedTls> {
  const servername = settings.REDIS_TLS_SERVER_NAME;
  const tls: TlsSettings = servername === undefined ? {} : { servername };
  const files = [CA, CERTIFICATE, KEY].flatMap((variable): NamedFile[] => {
    const path = settings[variable as keyof CertificateSettings];
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
    close: () => {
      watched.close();
    },
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
