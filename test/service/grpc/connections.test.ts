import { bothLimiters } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type GrpcApp, ruleForAll, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, of, useGateways } from '../../support/grpc-gateway.js';
import { useRawCalls } from '../../support/grpc-raw.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();
const rawCallsTo = useRawCalls();

const grpcUrl = ({ grpcPort }: GrpcApp): string => `http://127.0.0.1:${grpcPort}`;

const RULES_THAT_WAIT = { rules: [ruleForAll({ max_wait_millis: 86_400_000 })] };

describe('MAX_CONNECTIONS', () => {
  test('drops a connection above it, counts it, and goes on serving the others', async () => {
    const app = await start({ MAX_CONNECTIONS: '2' });
    const [first, second] = [gatewayOf(app), gatewayOf(app)];
    await first.askFor(uniqueKey());
    await second.askFor(uniqueKey());
    const third = await openConnection(grpcUrl(app));
    await third.closed;
    expect(third.received).toBe('');

    expect((await first.askFor(uniqueKey())).overall_code).toBe('OK');
    const dropped = { reason: 'too_many_connections' };
    const metrics = await scrape(app.url);
    expect(metrics.value('ratelimit_dropped_connections_total', dropped)).toBe(1);
    expect(app.log.filter(({ msg }) => msg === 'connections dropped')).toHaveLength(1);
  });

  test('accepts another connection when one has ended', async () => {
    const app = await start({ MAX_CONNECTIONS: '1' });
    const first = gatewayOf(app);
    await first.askFor(uniqueKey());
    first.close();

    await until(() =>
      gatewayOf(app)
        .askFor(uniqueKey())
        .then(
          () => true,
          () => false,
        ),
    );
  });
});

test('MAX_IN_FLIGHT_PER_CONNECTION calls wait on a connection, and one more comes when one is answered', async () => {
  const app = await start({ MAX_IN_FLIGHT_PER_CONNECTION: '2' }, RULES_THAT_WAIT);
  const gateway = gatewayOf(app);
  const key = uniqueKey();
  // The answer carries the service's bound.
  await gateway.askFor(uniqueKey());
  const holder = await approve(app.url, key);
  const calls = [1, 2].map(() => gateway.begin({ descriptors: [of(key)] }));
  await untilWaiting(app.url, key, 2);
  const free = uniqueKey();
  const third = gateway.begin({ descriptors: [of(free)] });
  // Another connection is served in the meantime.
  expect((await gatewayOf(app).askFor(uniqueKey())).overall_code).toBe('OK');
  expect((await debugState(app.url, free)).Found).toBe(false);
  // Not by a call that is cancelled: Node 22 and later refuse a stream that comes in one piece with its reset.
  await send(app.url, 'DELETE', `${ratePath(key)}/${holder}`);

  expect((await third.answer).overall_code).toBe('OK');
  await Promise.race(calls.map(({ answer }) => answer));
  for (const call of calls) call.cancel();
});

describe.each(bothLimiters(redis))('a gateway that waits (%s limiter)', (_name, settings) => {
  test('is withdrawn if its connection ends without notice', async () => {
    const app = await start(settings(), RULES_THAT_WAIT);
    const key = uniqueKey();
    const holder = await approve(app.url, key);
    const calls = rawCallsTo(app);
    calls.ask({ descriptors: [of(key)] }).catch(() => undefined);
    await untilWaiting(app.url, key, 1);
    calls.vanish();
    await untilWaiting(app.url, key, 0);
    await send(app.url, 'DELETE', `${ratePath(key)}/${holder}`);

    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
  });
});

describe('a connection that does not speak HTTP/2', () => {
  test.each([
    ['HTTP/1.1', requestText('GET', '/healthz')],
    ['noise', '\x00\x01\x02\xff'.repeat(100)],
    [
      'a preface followed by noise',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff',
    ],
  ])('is closed, and harms no other: %s', async (_what, text) => {
    const app = await start();
    const gateway = gatewayOf(app);
    await gateway.askFor(uniqueKey());
    const connection = await openConnection(grpcUrl(app));
    connection.write(text);
    await connection.closed;

    expect(connection.received).not.toContain('HTTP/1');
    expect((await gateway.askFor(uniqueKey())).overall_code).toBe('OK');
  });
});

test('calls that are cancelled as they arrive leave no waiter in the queue', async () => {
  const app = await start({}, RULES_THAT_WAIT);
  const key = uniqueKey();
  await approve(app.url, key);
  const gateway = gatewayOf(app);
  for (let round = 0; round < 20; round += 1) {
    const calls = Array.from({ length: 5 }, () => gateway.begin({ descriptors: [of(key)] }));
    calls[0]!.cancel();
    setImmediate(() => calls[1]!.cancel());
    // Answered when the others have been read.
    await gateway.askFor(uniqueKey());
    for (const call of calls) call.cancel();
    for (const { answer } of calls) expect((await failureOf(answer))[0]).toBe('CANCELLED');
  }

  await untilWaiting(app.url, key, 0);
});
