import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

import type { Logger } from 'pino';

import { SettingsError } from '../config/named-file.js';
import { WatchedFiles } from '../config/watched-files.js';

const CERTIFICATE = 'TLS_CERT_FILE';
const KEY = 'TLS_KEY_FILE';

/** A certificate with its chain, and its private key, as PEM. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export function secureWith(pair: KeyPair): KeyPair & { readonly minVersion: 'TLSv1.2' } {
  return { ...pair, minVersion: 'TLSv1.2' };
}

/**
 * The key pair in two files, kept up to date.
 * @throws SettingsError if a file can't be read or is invalid, or the two don't belong together
 */
export function watchKeyPair(
  certificatePath: string,
  keyPath: string,
  logger: Logger,
): Promise<WatchedFiles<KeyPair>> {
  return WatchedFiles.open(
    {
      what: 'certificate and key',
      files: [
        { variable: CERTIFICATE, path: certificatePath },
        { variable: KEY, path: keyPath, isSecret: true },
      ],
      parse: ([cert = Buffer.of(), key = Buffer.of()]) => {
        checkPair({ cert, key }, certificatePath, keyPath);
        return { cert, key };
      },
      describe: ({ cert }) => {
        const { subject, validTo } = new X509Certificate(cert);
        return { subject, validTo };
      },
    },
    logger,
  );
}

function checkPair(pair: KeyPair, certificatePath: string, keyPath: string): void {
  const wrong = (variable: string, path: string, takes: string): SettingsError =>
    new SettingsError(variable, JSON.stringify(path), takes);
  const takesChain = 'a PEM certificate, and those of its chain after it';
  const wrongCertificate = wrong(CERTIFICATE, certificatePath, takesChain);
  const certificate = orThrow(wrongCertificate, () => new X509Certificate(pair.cert));
  const wrongKey = wrong(KEY, keyPath, 'a PEM private key without a passphrase');
  const key = orThrow(wrongKey, () => createPrivateKey(pair.key));
  // A secure context would accept a pair of two kinds, such as an RSA key with an EC certificate.
  if (!certificate.checkPrivateKey(key)) {
    throw wrong(KEY, keyPath, `the private key of the certificate in ${CERTIFICATE}`);
  }
  // Only a secure context checks the rest of the chain.
  orThrow(wrongCertificate, () => createSecureContext(pair));
}

function orThrow<T>(error: SettingsError, make: () => T): T {
  try {
    return make();
  } catch {
    throw error;
  }
}
