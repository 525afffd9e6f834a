import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

import type { Timeouts } from '../../../src/net/connection-bounds.js';
import { type TestApp, startTestApp } from '../../support/app.js';
import type { IssuedCertificate } from '../../support/certificates.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { type HttpService, useHttpServices } from '../../support/http-service.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { trusted } from '../../support/trust.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApps } from '../../support/use-apps.js';
import { useKeyPair } from '../../support/use-key-pair.js';
import { useTls } from '../../support/use-tls.js';

const ONE_HOUR = 3_600_000;

const tls = useTls();
const folder = useTemporaryFolder();
const start = useApps();
const startService = useHttpServices();

/** The options of a client that knows only outdated versions of TLS. */
const OLD_TLS = {
  minVersion: 'TLSv1',
  maxVersion: 'TLSv1.1',
  ciphers: 'DEFAULT@SECLEVEL=0',
} as const;

/** So long that no client is too slow. */
const PATIENT: Timeouts = {
  headMillis: ONE_HOUR,
  requestMillis: ONE_HOUR,
  idleMillis: ONE_HOUR,
  checkMillis: 20,
};

async function handshake(url: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca: trusted, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

async function servedFingerprint(url: string): Promise<string> {
  const socket = await handshake(url);
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

describe('over TLS', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({
      ...tls.settings,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
    });
  });
  afterEach(() => app.stop(0));

  test('checks are decided, and the log says that TLS is on', async () => {
    const key = uniqueKey();

    expect(new URL(app.url).protocol).toBe('https:');
    await approve(app.url, key);
    expect((await send(app.url, 'POST', ratePath(key))).status).toBe(429);
    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 1 });
    expect(app.log[0]).toMatchObject({ msg: 'serving', tls: true });
  });

  test('a waiting client that disconnects loses its place, and is logged', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    waiting.disconnect();

    await untilWaiting(app.url, key, 0);
    await app.logged((line) => line.status === 499 && line.key === key);
  });

  test('a waiting client that ends its side in good order also loses its place', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const socket = await handshake(app.url);
    socket.write(requestText('POST', `${ratePath(key)}?canWait=true`));
    await untilWaiting(app.url, key, 1);
    socket.resume().end();

    await untilWaiting(app.url, key, 0);
  });
});

describe('a port with TLS', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ ...tls.settings, ADMIN_PORT: '0', LOG_4XX: 'true' });
  });
  afterAll(() => app.stop(0));

  test('can be the main port and the admin port', async () => {
    for (const url of [app.url, app.adminUrl]) {
      expect(new URL(url).protocol).toBe('https:');
      expect((await send(url, 'GET', '/healthz')).text).toBe('OK');
    }
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('speaks %s', async (version) => {
    const socket = await handshake(app.url, { minVersion: version, maxVersion: version });

    expect(socket.getProtocol()).toBe(version);
    socket.destroy();
  });

  test('does not speak TLSv1.1', async () => {
    await expect(handshake(app.url, OLD_TLS)).rejects.toThrow(/protocol version/i);
  });

  test('does not answer a request without TLS, and goes on serving', async () => {
    const plain = await openConnection(app.url.replace('https:', 'http:'));
    plain.write(requestText('GET', '/healthz'));
    await plain.closed;

    expect(plain.received).not.toContain('HTTP');
    expect((await send(app.url, 'GET', '/healthz')).status).toBe(200);
  });

  test('answers a request that it can not read with a 400', async () => {
    const connection = await openConnection(app.url);
    connection.write('no request\r\n\r\n');
    await connection.closed;

    expect(connection.received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(connection.received).toMatch(
      /\r\n\r\n{"error":"malformed request","code":"MALFORMED_REQUEST"}$/,
    );
    await app.logged(({ status, code }) => status === 400 && code === 'HPE_INVALID_METHOD');
  });
});

describe('a client that does not agree on TLS', () => {
  const keyPair = useKeyPair(tls);

  /** A client that has been accepted, and sends nothing. */
  async function connectTo({ url }: HttpService): Promise<RawConnection> {
    const connection = await openConnection(url.replace('https:', 'http:'));
    // Answered on another connection, so the first has been accepted before.
    await send(url, 'GET', '/healthz');
    return connection;
  }

  test('is cut after the time limit', async () => {
    const timeouts = { ...PATIENT, headMillis: 100 };
    const { url } = await startService({ keyPair: keyPair(), timeouts });
    const connection = await openConnection(url.replace('https:', 'http:'));
    await connection.closed;

    expect(connection.received).toBe('');
  });

  test('does not hold a service that stops', async () => {
    const service = await startService({ keyPair: keyPair(), timeouts: PATIENT });
    const connection = await connectTo(service);
    await service.stop();

    await connection.closed;
  });
});

describe('when the certificate changes', () => {
  let app: TestApp;
  let first: IssuedCertificate;
  let second: IssuedCertificate;
  let files: { readonly certFile: string; readonly keyFile: string };
  beforeEach(async () => {
    first = await tls.authority.issueServerCertificate();
    second = await tls.authority.issueServerCertificate();
    const name = join(folder, uniqueKey());
    files = { certFile: `${name}.crt`, keyFile: `${name}.key` };
    await replace(files.certFile, first.cert);
    await replace(files.keyFile, first.key);
    app = await startTestApp({
      TLS_CERT_FILE: files.certFile,
      TLS_KEY_FILE: files.keyFile,
      ADMIN_PORT: '0',
    });
  });
  afterEach(() => app.stop(0));

  async function replace(file: string, content: string): Promise<void> {
    await writeFile(`${file}.new`, content);
    await rename(`${file}.new`, file);
  }

  function fingerprintOf({ cert }: IssuedCertificate): string {
    return new X509Certificate(cert).fingerprint256;
  }

  const isReload = ({ msg }: { msg?: unknown }): boolean => msg === 'certificate and key reloaded';

  test('new connections get the new one, on both ports', async () => {
    expect(await servedFingerprint(app.url)).toBe(fingerprintOf(first));
    // Both files change as close to each other as possible.
    await Promise.all([replace(files.certFile, second.cert), replace(files.keyFile, second.key)]);
    await app.logged(isReload);

    expect(await servedFingerprint(app.url)).toBe(fingerprintOf(second));
    expect(await servedFingerprint(app.adminUrl)).toBe(fingerprintOf(second));
    expect(app.log.find(isReload)).toMatchObject({ level: 'info', subject: 'CN=localhost' });
  });

  test('older versions of TLS are still rejected', async () => {
    await Promise.all([replace(files.certFile, second.cert), replace(files.keyFile, second.key)]);
    await app.logged(isReload);
    await expect(handshake(app.url, OLD_TLS)).rejects.toThrow(/protocol version/i);
  });

  test('an open connection goes on', async () => {
    const connection = await openConnection(app.url);
    connection.write(requestText('GET', '/healthz'));
    await connection.receives(/OK$/);
    await Promise.all([replace(files.certFile, second.cert), replace(files.keyFile, second.key)]);
    await app.logged(isReload);
    connection.write(requestText('GET', '/unknown'));

    await connection.receives(/no such path/);
    connection.disconnect();
  });

  test('before the key, the first pair stays until the key changes', async () => {
    await replace(files.certFile, second.cert);
    const line = await app.logged(({ level }) => level === 'error');
    expect(line).toMatchObject({
      reason: `TLS_KEY_FILE: got ${JSON.stringify(files.keyFile)}, takes the private key of the certificate in TLS_CERT_FILE`,
      msg: 'certificate and key not reloaded, the last good ones stay in use',
    });
    expect(await servedFingerprint(app.url)).toBe(fingerprintOf(first));
    await replace(files.keyFile, second.key);
    await app.logged(isReload);

    expect(await servedFingerprint(app.url)).toBe(fingerprintOf(second));
  });
});

describe('a certificate and key', () => {
  let pair: IssuedCertificate;
  beforeAll(async () => {
    pair = await tls.authority.issueServerCertificate();
  });

  async function file(content: string): Promise<string> {
    const path = join(folder, uniqueKey());
    await writeFile(path, content);
    return path;
  }

  const rsaKey = (passphrase?: string): string =>
    generateKeyPairSync('rsa', { modulusLength: 2048 })
      .privateKey.export({
        type: 'pkcs8',
        format: 'pem',
        ...(passphrase !== undefined && { cipher: 'aes-256-cbc', passphrase }),
      })
      .toString();

  const NO_CERTIFICATE = 'a PEM certificate, and those of its chain after it';
  const NO_KEY = 'a PEM private key without a passphrase';
  const NOT_ITS_KEY = 'the private key of the certificate in TLS_CERT_FILE';

  test.each<[what: string, content: () => string, takes: string]>([
    ['is empty', () => '', NO_CERTIFICATE],
    ['holds something else', () => 'certificate', NO_CERTIFICATE],
    ['is cut short', () => pair.cert.slice(0, 300), NO_CERTIFICATE],
    ['holds the key', () => pair.key, NO_CERTIFICATE],
    [
      'has a chain that is cut short',
      () => pair.cert + tls.authority.ca.slice(0, 300),
      NO_CERTIFICATE,
    ],
  ])('stop the start if the certificate %s', async (_what, content, takes) => {
    const certFile = await file(content());

    await expect(
      startTestApp({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: pair.keyFile }),
    ).rejects.toThrow(`TLS_CERT_FILE: got ${JSON.stringify(certFile)}, takes ${takes}`);
  });

  test.each<[what: string, content: () => string | Promise<string>, takes: string]>([
    ['is empty', () => '', NO_KEY],
    ['is the certificate', () => pair.cert, NO_KEY],
    ['is cut short', () => pair.key.slice(0, 100), NO_KEY],
    ['wants a passphrase', () => rsaKey('secret'), NO_KEY],
    [
      "is another certificate's",
      async () => (await tls.authority.issueServerCertificate()).key,
      NOT_ITS_KEY,
    ],
    ['is of another kind', () => rsaKey(), NOT_ITS_KEY],
  ])('stop the start if the key %s', async (_what, content, takes) => {
    const keyFile = await file(await content());

    await expect(
      startTestApp({ TLS_CERT_FILE: pair.certFile, TLS_KEY_FILE: keyFile }),
    ).rejects.toThrow(`TLS_KEY_FILE: got ${JSON.stringify(keyFile)}, takes ${takes}`);
  });

  test('can be in one file', async () => {
    const both = await file((await readFile(pair.keyFile, 'utf8')) + pair.cert);
    const app = await start({ TLS_CERT_FILE: both, TLS_KEY_FILE: both });

    expect((await send(app.url, 'GET', '/healthz')).status).toBe(200);
  });
});
