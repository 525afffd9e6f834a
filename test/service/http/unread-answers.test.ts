import { once } from 'node:events';

import type { InstanceState } from '../../../src/limiter/limiter.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import type { Timeouts } from '../../../src/net/connection-bounds.js';
import { extent } from '../../support/extent.js';
import { ratePath, send } from '../../support/http-client.js';
import { smallLimiter, useHttpServices } from '../../support/http-service.js';
import { scrape } from '../../support/prometheus-text.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { BUNDLE, sendOnly } from '../../support/unread-answers.js';
import { until } from '../../support/until.js';
import { useKeyPair } from '../../support/use-key-pair.js';
import { useTls } from '../../support/use-tls.js';
import { blockedLimiter } from '../../support/watched-limiter.js';

const tls = useTls();
const startService = useHttpServices();
afterEach(killReplicas);

const CONNECTIONS = 60;
const REQUESTS = 100;
const MIB = 1024 * 1024;
/** Of the process, with all that the answers leave to the garbage collection. The answers to all requests take 8 GiB. */
const MOST_GROWTH_BYTES = 300 * MIB;
/** More than the sockets of this machine hold. */
const PART_OF_LISTING = 100;

const ONE_HOUR = 3_600_000;
const SHORT: Timeouts = {
  // None of its own, which would also be one for TLS.
  headMillis: 0,
  requestMillis: 600,
  idleMillis: ONE_HOUR,
  checkMillis: ONE_HOUR,
};

const LARGE: [what: string, text: string][] = [
  ['GET /openapi.json', requestText('GET', '/openapi.json')],
  ['GET /docs/{file}', requestText('GET', BUNDLE)],
  ['GET /ui/{file}', requestText('GET', '/ui/main.js')],
  ['GET /ui/data', requestText('GET', '/ui/data')],
  ['GET /debug', requestText('GET', '/debug')],
  ['GET /metrics', requestText('GET', '/metrics')],
  ['POST /rate', bulkText()],
];

function bulkText(): string {
  const body = JSON.stringify([{ key: uniqueKey() }]);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  return requestText('POST', '/rate', headers) + body;
}

/** Lists without end until the test sets `isEnough`. */
function endlessLimiter() {
  const limiter = smallLimiter();
  const state: InstanceState = {
    key: 'x'.repeat(512),
    limits: [{ ...ownLimit(1000, 1), used: 0, millisToWindowEnd: 1000 }],
    maxRequestsInQueue: 1,
    held: 0,
    denied: 0,
    waiting: 0,
    pausedMillis: 0,
  };
  const page = Array.from({ length: PART_OF_LISTING }, () => state);
  const listing = { limiter, pages: 0, isEnough: false };
  limiter.list = async function* () {
    for (; !listing.isEnough; listing.pages += 1) {
      await Promise.resolve();
      yield page;
    }
  };
  return listing;
}

/** Ordinary tests take each protocol and each port once. */
describe.each([
  ['HTTP', extent(['admin'], ['service', 'admin']), () => ({})],
  ['HTTPS', extent(['service'], ['service', 'admin']), () => tls.settings],
])('answers that nobody reads (%s)', (_name, ports, settings) => {
  test.each(ports)(
    'take little memory on the %s port, whoever sends as many requests as a connection takes',
    async (port) => {
      const replica = await startReplica({
        ...settings(),
        ...(port === 'admin' ? { ADMIN_PORT: '0' } : {}),
      });
      const serving = replica.log.find(({ msg }) => msg === 'serving')!;
      const url = new URL(replica.url);
      if (serving.tls === true) url.protocol = 'https:';
      if (port === 'admin') url.port = String(serving.adminPort);
      const measure = () => scrape(url.origin);
      const memory = async (): Promise<number> =>
        (await measure()).value('process_resident_memory_bytes');
      const before = await memory();
      const text = requestText('GET', BUNDLE).repeat(REQUESTS);
      const clients = await Promise.all(
        Array.from({ length: CONNECTIONS }, () => sendOnly(url.origin, text)),
      );
      let most = before;
      await until(async () => {
        most = Math.max(most, await memory());
        if (most - before > MOST_GROWTH_BYTES) return true;
        const deferred = (await measure()).value('ratelimit_deferred_requests_total');
        return deferred >= CONNECTIONS * (REQUESTS - 1);
      });
      for (const client of clients) client.destroy();

      expect(most - before).toBeLessThan(MOST_GROWTH_BYTES);
    },
  );
});

test.each(LARGE)(
  '%s is answered when the answers before it on its connection are sent',
  async (_what, text) => {
    const { limiter, unblock } = blockedLimiter();
    const service = await startService({ limiter });
    const connection = await openConnection(service.url);
    connection.write(requestText('POST', ratePath(uniqueKey())) + text.repeat(3));
    connection.write(requestText('POST', ratePath(uniqueKey())));
    await until(() => service.deferred > 0);
    unblock();
    await connection.receives(/request_id[^]*(HTTP\/1\.1 200[^]*){3}request_id[^]*\}$/);
    connection.disconnect();

    expect(service.drops).toEqual([]);
  },
);

describe('a client that reads nothing for the time that it may take', () => {
  const keyPair = useKeyPair(tls);

  test.each([
    ['HTTP', () => undefined],
    ['HTTPS', keyPair],
  ])('is cut, also if it has sent one request only (%s)', async (_name, pair) => {
    const listing = endlessLimiter();
    const { limiter } = listing;
    const service = await startService({ limiter, timeouts: SHORT, keyPair: pair() });
    const client = await sendOnly(service.url, requestText('GET', '/debug'));
    await until(() => service.drops.length > 0);
    listing.isEnough = true;
    client.destroy();

    expect(service.drops).toEqual(['slow_reader']);
  });

  test('is not cut while it waits for an answer', async () => {
    const service = await startService({ timeouts: SHORT });
    const key = uniqueKey();
    await send(service.url, 'POST', ratePath(key));
    const waiting = await openConnection(service.url);
    waiting.write(requestText('POST', `${ratePath(key)}?canWait=true`));
    await until(() => service.limiter.waiting() === 1);
    const listing = requestText('GET', BUNDLE).repeat(REQUESTS);
    // When this one is cut, the other would have been.
    const unread = await sendOnly(service.url, listing);
    await until(() => service.drops.length === 1);
    unread.destroy();

    expect(service.limiter.waiting()).toBe(1);
    waiting.disconnect();
  });
});

test('a client that reads late gets its whole answer', async () => {
  const listing = endlessLimiter();
  const service = await startService({ limiter: listing.limiter });
  const client = await sendOnly(service.url, requestText('GET', '/debug', { Connection: 'close' }));
  let seen = -1;
  await until(() => {
    // The listing has stopped: the connection takes no more.
    const hasStopped = seen === listing.pages;
    seen = listing.pages;
    return hasStopped && seen > 0;
  });
  let received = '';
  client
    .setEncoding('latin1')
    .on('data', (text: string) => (received += text))
    .resume();
  await until(() => listing.pages > seen);
  listing.isEnough = true;
  await once(client, 'close');

  expect(received.match(/"Key":/g)).toHaveLength(listing.pages * PART_OF_LISTING);
  expect(received).toMatch(/\}\}\r\n0\r\n\r\n$/);
});
