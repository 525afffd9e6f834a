import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import type { WatchedFiles } from '../../watched-files.js';
import { type Access, openAccess } from '../auth/access.js';
import { bearerAccess } from '../auth/bearer-access.js';
import { watchTokenFile } from '../auth/token-file.js';
import { type KeyPair, watchKeyPair } from './tls/key-pair.js';

/** Who may ask, and on what kind of connection. */
export interface Security {
  readonly access: Access;
  /** Of the service itself, where it speaks TLS. */
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  /** From now on no file is looked at. */
  close(): void;
}

type SecuritySettings = Pick<Settings, 'AUTH_TOKENS_FILE' | 'TLS_CERT_FILE' | 'TLS_KEY_FILE'>;

/** @throws SettingsError for a file that can't be read, or is wrong */
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
