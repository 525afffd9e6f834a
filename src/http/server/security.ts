import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import type { WatchedFiles } from '../../config/watched-files.js';
import { type Access, openAccess } from '../auth/access.js';
import { bearerAccess } from '../auth/bearer-access.js';
import { watchTokenFile } from '../auth/token-file.js';
import { type KeyPair, watchKeyPair } from './tls/key-pair.js';

/** The tokens and the certificate of the service. */
export interface Security {
  readonly access: Access;
  /** The service's own, if it speaks TLS. */
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  /** Stops watching the files. */
  close(): void;
}

type SecuritySettings = Pick<Settings, 'AUTH_TOKENS_FILE' | 'TLS_CERT_FILE' | 'TLS_KEY_FILE'>;

/**
 * Reads the files that the settings name, and watches them.
 * @throws SettingsError for a file that can't be read, or is wrong
 */
export async function openSecurity(settings: SecuritySettings, logger: Logger): Promise<Security> {
  const { AUTH_TOKENS_FILE, TLS_CERT_FILE, TLS_KEY_FILE } = settings;
  const keyPair =
    TLS_CERT_FILE !== undefined && TLS_KEY_FILE !== undefined
      ? await watchKeyPair(TLS_CERT_FILE, TLS_KEY_FILE, logger)
      : undefined;
  const tokens =
    AUTH_TOKENS_FILE === undefined ? undefined : await watchTokenFile(AUTH_TOKENS_FILE, logger);
  return {
    access: tokens ? bearerAccess(tokens) : openAccess,
    keyPair,
    close: () => {
      keyPair?.close();
      tokens?.close();
    },
  };
}
