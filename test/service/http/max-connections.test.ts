import { type TestApp, startTestApp } from '../../support/app.js';
import { send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { until } from '../../support/until.js';

const MESSAGE = 'connections dropped';
const DROPPED = 'ratelimit_dropped_connections_total';

describe('a port with MAX_CONNECTIONS=2', () => {
  let app: TestApp;
  let connections: RawConnection[];
  beforeEach(async () => {
    app = await startTestApp({ MAX_CONNECTIONS: '2', ADMIN_PORT: '0' });
    connections = [await answered(), await answered()];
  });
  afterEach(async () => {
    for (const connection of connections) connection.disconnect();
    await app.stop(0);
  });

  async function answered(): Promise<RawConnection> {
    const connection = await openConnection(app.url);
    connection.write(requestText('GET', '/healthz'));
    await connection.receives(/OK$/);
    return connection;
  }

  async function expectDropped(): Promise<void> {
    const connection = await openConnection(app.url);
    await connection.closed;

    expect(connection.received).toBe('');
  }

  function dropsLogged(): number[] {
    return app.log
      .filter(({ msg }) => msg === MESSAGE)
      .map(({ dropped }) => (dropped as { too_many_connections: number }).too_many_connections);
  }

  test('drops a third connection, counts it, and goes on serving the two', async () => {
    await expectDropped();
    connections[0]!.write(requestText('GET', '/healthz'));
    await connections[0]!.receives(/OK[^]*OK$/);

    const all = await scrape(app.adminUrl);
    expect(all.value(DROPPED, { reason: 'too_many_connections' })).toBe(1);
  });

  test('accepts another connection when one has ended', async () => {
    connections[0]!.disconnect();
    await until(async () => {
      try {
        return (await send(app.url, 'GET', '/healthz')).status === 200;
      } catch {
        return false;
      }
    });
  });

  test('does not count the connections of the admin port', async () => {
    expect((await send(app.adminUrl, 'GET', '/healthz')).status).toBe(200);
  });

  test('logs the first drop at once, and further drops in one line a second', async () => {
    for (let round = 0; round < 10; round += 1) await expectDropped();
    await until(() => dropsLogged().reduce((sum, dropped) => sum + dropped, 0) === 10);

    expect(dropsLogged()).toEqual([1, 9]);
  });
});

test('the metrics of dropped connections exist from the start', async () => {
  const app = await startTestApp();
  const all = await scrape(app.url);
  await app.stop(0);

  expect(all.valuesOf('ratelimit_held_requests_total')).toEqual({
    ratelimit_held_requests_total: 0,
  });
  expect(Object.values(all.valuesOf(DROPPED))).toEqual([0, 0, 0, 0, 0]);
});
