import type { Logger } from 'pino';

import { systemClock } from '../common/clock.js';
import type { Settings } from '../config/settings.js';
import type { WatchedFiles } from '../config/watched-files.js';
import { type Access, openAccess } from '../service/callers/access.js';
import { bearerAccess } from '../service/callers/bearer-access.js';
import { CallerPlaces } from '../service/callers/caller-places.js';
import { TokenRejections } from '../service/callers/token-rejections.js';
import { watchTokenFile } from '../service/callers/token-file.js';
import type { AuthState } from '../metrics/auth-metrics.js';
import { type KeyPair, watchKeyPair } from '../net/key-pair.js';

/** The tokens and the certificate of the service. */
export interface Security {
  readonly access: Access;
  readonly auth: AuthState;
  /** The key pair of the service, if it speaks TLS. */
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  /** Stops watching the files. */
  close(): void;
}

/**
 * Reads the files that the settings name, and watches them.
 * @throws SettingsError for a file that can't be read, or is invalid
 */
export async function openSecurity(settings: Settings, logger: Logger): Promise<Security> {
  const { AUTH_TOKENS_FILE, TLS_CERT_FILE, TLS_KEY_FILE } = settings;
  const keyPair =
    TLS_CERT_FILE !== undefined && TLS_KEY_FILE !== undefined
      ? await watchKeyPair(TLS_CERT_FILE, TLS_KEY_FILE, logger)
      : undefined;
  const tokens =
    AUTH_TOKENS_FILE === undefined ? undefined : await watchTokenFile(AUTH_TOKENS_FILE, logger);
  const rejections = new TokenRejections(systemClock, logger);
  const places = new CallerPlaces(settings.MAX_WAITERS, settings.MAX_WAITERS_PER_CALLER);
  return {
    access: tokens ? bearerAccess(tokens, rejections, places) : openAccess(),
    auth: {
      get isStale() {
        return tokens?.isStale ?? false;
      },
      get isGone() {
        return tokens?.isGone ?? false;
      },
      rejections: rejections.counts,
    },
    keyPair,
    close: () => {
      keyPair?.close();
      tokens?.close();
      rejections.close();
    },
  };
}
