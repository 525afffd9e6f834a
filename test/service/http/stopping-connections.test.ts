import { stopInOrder } from '../../../src/app/stop-in-order.js';
import type { Ports } from '../../../src/http/server/ports.js';
import type { KeptAliveServer } from '../../../src/http/server/server.js';
import { startTestApp } from '../../support/app.js';
import { ratePath } from '../../support/http-client.js';
import {
  fullKey,
  smallLimiter,
  untilWaiting,
  useHttpServices,
} from '../../support/http-service.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useTls } from '../../support/use-tls.js';

const tls = useTls();
const start = useHttpServices();

/** Opens connections, gets one answer on each, and keeps them open. */
async function keepAlive({ url }: { url: string }, count: number): Promise<RawConnection[]> {
  const open = async (): Promise<RawConnection> => {
    const connection = await openConnection(url);
    // At once: on a busy machine the others take longer to open than a new connection may be silent.
    connection.write(requestText('POST', ratePath(uniqueKey())));
    await connection.receives(/request_id/);
    return connection;
  };
  return Promise.all(Array.from({ length: count }, open));
}

/** The last answer on a connection. */
function lastAnswer({ received }: RawConnection): string {
  return received.slice(received.lastIndexOf('HTTP/1.1 '));
}

describe.each([
  ['HTTP', () => ({})],
  ['HTTPS', () => tls.settings],
])('a replica that stops (%s)', (_name, settings) => {
  test('answers requests that were sent on idle connections before it closed them', async () => {
    const app = await startTestApp(settings());
    const connections = await keepAlive(app, 300);
    for (const connection of connections) {
      connection.write(requestText('POST', ratePath(uniqueKey())));
    }
    await app.stop(0);
    await Promise.all(connections.map(({ closed }) => closed));

    for (const connection of connections) {
      const answer = lastAnswer(connection);
      expect(connection.received.match(/request_id/g)).toHaveLength(2);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(answer).toMatch(/^Connection: close\r$/m);
    }
  });
});

const ONE_HOUR = 3_600_000;
/** The only port, with the parts that a stop does not use. */
const withUnused = (server: KeptAliveServer): Ports => ({
  ...server,
  adminPort: undefined,
  startDraining: () => undefined,
  cutConnections: () => {
    server.cutConnections();
    return Promise.resolve();
  },
});

test('idle connections are closed gradually, and at once in a hurry', async () => {
  const service = await start();
  const connections = await keepAlive(service, 50);
  let closed = 0;
  for (const connection of connections) void connection.closed.then(() => (closed += 1));
  const hurry = new AbortController();
  const ended = service.server.endIdle(ONE_HOUR, hurry.signal);
  await until(() => closed > 0);

  const last = connections.at(-1)!;
  last.write(requestText('GET', '/healthz'));
  await last.receives(/OK$/);
  expect(closed).toBeLessThan(10);

  hurry.abort();
  await ended;
  await until(() => closed === connections.length - 1);
  // It was used, and its answers ask for its end while a replica stops.
  last.write(requestText('GET', '/healthz'));
  await last.receives(/OK[^]*OK$/);
});

test('only idle connections are closed', async () => {
  const service = await start();
  const { key } = await fullKey(service);
  const [idle, halfSent, waiting] = await keepAlive(service, 3);
  const silent = await openConnection(service.url);
  halfSent!.write('GET /healthz HTTP/1.1\r\nHost:');
  waiting!.write(requestText('POST', `/rate/${key}?canWait=true`));
  await untilWaiting(service, 1);
  await service.server.endIdle(0);
  await idle!.closed;

  halfSent!.write(' test\r\n\r\n');
  await halfSent!.receives(/OK$/);
  silent.write(requestText('GET', '/healthz'));
  await silent.receives(/OK$/);
  expect(service.limiter.waiting).toBe(1);
});

test('only waiters get a 503 from a replica that stops: other connections are closed before', async () => {
  const limiter = smallLimiter();
  const service = await start({ limiter });
  const { key } = await fullKey(service);
  const [waiting, halfSent] = await keepAlive(service, 2);
  const silent = await openConnection(service.url);
  halfSent!.write('POST /rate/half-sent HTTP/1.1\r\nHost:');
  waiting!.write(requestText('POST', `/rate/${key}?canWait=true`));
  await untilWaiting(service, 1);
  const close = limiter.close.bind(limiter);
  limiter.close = async () => {
    silent.write(requestText('POST', ratePath(uniqueKey())));
    halfSent!.write(' test\r\n\r\n');
    await close();
  };
  await stopInOrder(withUnused(service.server), limiter, 0, undefined);
  await Promise.all([waiting, halfSent, silent].map((connection) => connection!.closed));

  expect(lastAnswer(waiting!)).toMatch(/^HTTP\/1\.1 503 /);
  expect(lastAnswer(halfSent!)).toMatch(/^HTTP\/1\.1 200 /);
  expect(silent.received).toBe('');
});
