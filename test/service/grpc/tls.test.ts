import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import { connect as connectPlain, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

import { credentials } from '@grpc/grpc-js';

import { listenForHttp2 } from '../../../src/grpc/grpc-port.js';
import { watchKeyPair } from '../../../src/net/key-pair.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, useGateways } from '../../support/grpc-gateway.js';
import { recordLog } from '../../support/recorded-log.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useTls } from '../../support/use-tls.js';

const tls = useTls();
const folder = useTemporaryFolder();
const start = useGrpcApps();
const gatewayOf = useGateways();

const trusting = () => credentials.createSsl(Buffer.from(tls.authority.ca));

async function handshake(
  { grpcPort }: { readonly grpcPort: number },
  options: ConnectionOptions = {},
): Promise<TLSSocket> {
  const socket = connect({
    host: '127.0.0.1',
    port: grpcPort,
    ca: tls.authority.ca,
    ALPNProtocols: ['h2'],
    ...options,
  });
  await once(socket, 'secureConnect');
  return socket;
}

async function plainConnection({ grpcPort }: { grpcPort: number }): Promise<Socket> {
  const socket = connectPlain(grpcPort, '127.0.0.1');
  // The service may close the connection with a reset.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

describe('over TLS', () => {
  let app: GrpcApp;
  beforeEach(async () => {
    app = await start(tls.settings);
  });

  test('calls are decided', async () => {
    const key = uniqueKey();
    const gateway = gatewayOf(app, trusting());

    expect((await gateway.askFor(key)).overall_code).toBe('OK');
    expect((await gateway.askFor(key)).overall_code).toBe('OVER_LIMIT');
  });

  test('a gateway without TLS, or without trust in the certificate, gets no answer', async () => {
    for (const creds of [credentials.createInsecure(), credentials.createSsl()]) {
      const call = gatewayOf(app, creds).askFor(uniqueKey());
      expect((await failureOf(call))[0]).toBe('UNAVAILABLE');
    }
    expect((await gatewayOf(app, trusting()).askFor(uniqueKey())).overall_code).toBe('OK');
  });

  test('TLSv1.1 is rejected', async () => {
    const old = {
      minVersion: 'TLSv1.1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    } as const;

    await expect(handshake(app, old)).rejects.toThrow(/protocol version/i);
  });

  test('a client that speaks only HTTP/1.1 fails in the handshake', async () => {
    await expect(handshake(app, { ALPNProtocols: ['http/1.1'] })).rejects.toThrow(
      /no application protocol/i,
    );
  });

  test("a client's connection is closed if it names no protocol", async () => {
    const socket = await handshake(app, { ALPNProtocols: [] });
    socket.resume();
    await once(socket, 'close');

    expect((await gatewayOf(app, trusting()).askFor(uniqueKey())).overall_code).toBe('OK');
  });

  test.each([[['h2']], [[]]])(
    'clients that reset their connections harm no other: %j',
    async (ALPNProtocols) => {
      for (let i = 0; i < 10; i += 1) {
        const below = await plainConnection(app);
        const socket = await handshake(app, { socket: below, ALPNProtocols });
        socket.on('error', () => undefined);
        if (i % 2 === 0) socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
        below.resetAndDestroy();
        await once(socket, 'close');
      }

      expect((await gatewayOf(app, trusting()).askFor(uniqueKey())).overall_code).toBe('OK');
    },
  );

  test('a client that does not agree on TLS does not hold a service that stops', async () => {
    const socket = (await plainConnection(app)).resume();
    // Answered on another connection, so the first has been accepted before.
    await gatewayOf(app, trusting()).askFor(uniqueKey());
    const closed = once(socket, 'close');
    await app.stop(0);

    await closed;
  });
});

describe('a listener', () => {
  async function listen(handshakeMillis?: number) {
    const { certFile, keyFile } = await tls.authority.issueServerCertificate();
    const keyPair = await watchKeyPair(certFile, keyFile, recordLog().logger);
    const served: Socket[] = [];
    const listener = await listenForHttp2(
      {
        setting: 'GRPC_PORT',
        port: 0,
        host: '127.0.0.1',
        keyPair,
        bounds: { maxConnections: 10, onDropped: () => undefined },
        ...(handshakeMillis === undefined ? {} : { handshakeMillis }),
      },
      (socket) => served.push(socket),
    );
    keyPair.close();
    return { listener, grpcPort: listener.port, served };
  }

  test('cuts a client that does not agree on TLS in time', async () => {
    const { listener, grpcPort, served } = await listen(100);
    const socket = (await plainConnection({ grpcPort })).resume();
    await once(socket, 'close');
    await listener.stopAccepting();

    expect(served).toEqual([]);
  });

  test('cuts a client that does not agree on TLS along with all others', async () => {
    const { listener, grpcPort } = await listen(3_600_000);
    const socket = (await plainConnection({ grpcPort })).resume();
    const other = (await handshake({ grpcPort })).resume();
    const stopped = listener.stopAccepting();
    listener.cutConnections();
    await stopped;

    await until(() => socket.destroyed && other.destroyed);
  });

  test('that stops does not serve a client that agrees on TLS afterwards', async () => {
    const { listener, grpcPort, served } = await listen();
    const socket = await plainConnection({ grpcPort });
    // Answered on another connection, so the first has been accepted before.
    const other = await handshake({ grpcPort });
    await until(() => served.length === 1);
    const stopped = listener.stopAccepting();
    const late = await handshake({ grpcPort }, { socket });
    // The service may close the connection with a reset.
    late.on('error', () => undefined);
    await until(() => late.destroyed);
    other.destroy();
    await stopped;

    expect(served).toHaveLength(1);
  });
});

describe('when the certificate changes', () => {
  test('later connections get the new one, and open connections go on', async () => {
    const name = join(folder, uniqueKey());
    const files = { TLS_CERT_FILE: `${name}.crt`, TLS_KEY_FILE: `${name}.key` };
    const replace = async (file: string, content: string): Promise<void> => {
      await writeFile(`${file}.new`, content);
      await rename(`${file}.new`, file);
    };
    const [first, second] = [
      await tls.authority.issueServerCertificate(),
      await tls.authority.issueServerCertificate(),
    ];
    await replace(files.TLS_CERT_FILE, first.cert);
    await replace(files.TLS_KEY_FILE, first.key);
    const app = await start(files);
    const servedFingerprint = async (): Promise<string> => {
      const socket = await handshake(app);
      const { fingerprint256 } = socket.getPeerCertificate();
      socket.destroy();
      return fingerprint256;
    };
    const gateway = gatewayOf(app, trusting());
    await gateway.askFor(uniqueKey());
    expect(await servedFingerprint()).toBe(new X509Certificate(first.cert).fingerprint256);
    await Promise.all([
      replace(files.TLS_CERT_FILE, second.cert),
      replace(files.TLS_KEY_FILE, second.key),
    ]);
    await app.logged(({ msg }) => msg === 'certificate and key reloaded');

    expect(await servedFingerprint()).toBe(new X509Certificate(second.cert).fingerprint256);
    expect((await gateway.askFor(uniqueKey())).overall_code).toBe('OK');
    expect((await gatewayOf(app, trusting()).askFor(uniqueKey())).overall_code).toBe('OK');
  });
});
