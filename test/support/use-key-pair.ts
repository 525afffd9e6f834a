import { pino } from 'pino';

import type { WatchedFiles } from '../../src/config/watched-files.js';
import { type KeyPair, watchKeyPair } from '../../src/net/key-pair.js';
import type { TlsForTests } from './use-tls.js';

/** A certificate and its key for the ports of a `describe`, which a test gets when it runs. */
export function useKeyPair(tls: TlsForTests): () => WatchedFiles<KeyPair> {
  let keyPair: WatchedFiles<KeyPair>;
  beforeAll(async () => {
    const { certFile, keyFile } = await tls.authority.issueServerCertificate();
    keyPair = await watchKeyPair(certFile, keyFile, pino({ level: 'silent' }));
  });
  afterAll(() => {
    keyPair.close();
  });
  return () => keyPair;
}
