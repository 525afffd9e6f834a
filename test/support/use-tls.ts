import type { Environment } from './both-limiters.js';
import { type Authority, createAuthority } from './certificates.js';
import { trust } from './trust.js';

/** An authority for one test file, which the tests' clients trust. */
export interface TlsForTests {
  readonly authority: Authority;
  /** Settings for TLS, with a certificate of this authority. */
  readonly settings: Environment;
}

/** Makes the authority before the tests of this file, and removes its files after them. */
export function useTls(): TlsForTests {
  let made: TlsForTests | undefined;

  beforeAll(async () => {
    const authority = await createAuthority();
    trust(authority.ca);
    const { certFile, keyFile } = await authority.issueServerCertificate();
    made = { authority, settings: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } };
  });
  afterAll(() => made?.authority.remove());

  const ready = (): TlsForTests => {
    if (!made) throw new Error('the authority of this file has not been made yet');
    return made;
  };
  return {
    get authority() {
      return ready().authority;
    },
    get settings() {
      return ready().settings;
    },
  };
}
