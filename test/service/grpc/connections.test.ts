import { setImmediate as nextTick } from 'node:timers/promises';

import { bothLimiters, PATIENT_STORE } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { type GrpcApp, ruleForAll, useGrpcApps } from '../../support/grpc-app.js';
import { type Gateway, of, type PendingCall, useGateways } from '../../support/grpc-gateway.js';
import { useRawCalls } from '../../support/grpc-raw.js';
import { useGrpcServices } from '../../support/grpc-service.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import fc from '../../support/properties.js';
import { quotaOf } from '../../support/quota.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();
const rawCallsTo = useRawCalls();

const grpcUrl = ({ grpcPort }: GrpcApp): string => `http://127.0.0.1:${grpcPort}`;

const RULES_THAT_WAIT = { rules: [ruleForAll({ max_wait_millis: 86_400_000 })] };

test('MAX_CONNECTIONS drops a connection above it, counts it, and goes on serving the others', async () => {
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

describe('shares of connections', () => {
  const QUOTA = quotaOf(1000);

  const start = useGrpcServices();

  let limiter: StoreLimiterStub;
  let gateway: Gateway;
  let connect: () => Gateway;
  beforeEach(async () => {
    limiter = new StoreLimiterStub();
    const waits = { ...ruleForAll({ max_wait_millis: 60_000 }), key_pattern: 'patient-.*' };
    const service = await start(limiter, { rules: [waits] });
    gateway = gatewayOf(service);
    connect = () => gatewayOf(service);
  });

  /** Begins a call of 100 descriptors. */
  function beginLarge(by: Gateway, name: string): PendingCall {
    return by.begin({ descriptors: Array.from({ length: 100 }, (_, i) => of(`${name}-${i}`)) });
  }

  /** Begins calls that take the share of a connection. */
  const beginShare = (by: Gateway, name: string): PendingCall[] =>
    Array.from({ length: 10 }, (_, i) => beginLarge(by, `${name}-${i}`));

  /** The call of a descriptor's key. */
  const callOf = (key: string): string => key.replace(/-\d+$/, '');

  /** Approves each check that is asked for, until the calls are over. */
  async function approveAll(calls: readonly PendingCall[]): Promise<void> {
    let isOver = false;
    const over = Promise.allSettled(calls.map(({ answer }) => answer)).then(() => (isOver = true));
    let approved = 0;
    await until(() => {
      for (; approved < limiter.asked.length; approved += 1) {
        limiter.asked[approved]!.waiter.approve(QUOTA);
      }
      return isOver;
    });
    await over;
  }

  test('at most 1000 checks of a connection are under way, and further ones wait for their turn', async () => {
    const calls = [...beginShare(gateway, 'large'), ...beginShare(gateway, 'late')];
    await until(() => limiter.asked.length === 1000);
    // Answered on the same connection, after all of the calls have been read.
    const single = gateway.begin({ descriptors: [of('single')] });
    await until(() => limiter.asked.length === 1001);
    expect(limiter.asked.at(-1)!.request.key).toBe('single');
    limiter.asked.at(-1)!.waiter.approve(QUOTA);
    await single.answer;
    const begun = new Set(limiter.asked.map(({ request }) => callOf(request.key)));
    limiter.asked[0]!.waiter.approve(QUOTA);
    await until(() => limiter.asked.length === 1002);

    // Ten calls have the share. The next check is the first one of another call.
    const { key } = limiter.asked.at(-1)!.request;
    expect(key).toMatch(/^(large|late)-\d-0$/);
    expect(begun).not.toContain(callOf(key));
    await approveAll(calls);
    for (const { answer } of calls) expect((await answer).overall_code).toBe('OK');
  });

  test('each connection has a share of its own, and at most 4000 checks of all are under way', async () => {
    const calls = [...beginShare(gateway, 'first'), beginLarge(gateway, 'first-more')];
    await until(() => limiter.asked.length === 1000);
    for (const name of ['second', 'third', 'fourth']) {
      const before = limiter.asked.length;
      calls.push(...beginShare(connect(), name));
      await until(() => limiter.asked.length === before + 1000);
    }
    const late = connect();
    calls.push(beginLarge(late, 'late'));
    // Answered on the same connection, after the call before it has been read.
    const single = late.begin({ descriptors: [of('single')] });
    await until(() => limiter.asked.length === 4001);
    limiter.asked.at(-1)!.waiter.approve(QUOTA);
    await single.answer;
    limiter.asked[0]!.waiter.approve(QUOTA);
    await until(() => limiter.asked.length === 4002);

    expect(limiter.asked.at(-1)!.request.key).toMatch(/^(first-\w+|late)-0$/);
    await approveAll(calls);
  });

  test('descriptors that wait do not delay other calls on their connection', async () => {
    const patient = Array.from({ length: 11 }, (_, call) =>
      gateway.begin({
        descriptors: Array.from({ length: 100 }, (_, i) => of(`patient-${call}-${i}`)),
      }),
    );
    await until(() => limiter.asked.length === 1100);
    const large = beginLarge(gateway, 'large');
    await until(() => limiter.asked.length === 1200);

    await approveAll([...patient, large]);
  });

  describe('on Redis', () => {
    const redis = useRedis();
    const startApp = useGrpcApps();

    test('a check of another connection is answered before the last of 20 large calls, and none fails', async () => {
      const app = await startApp({ ...PATIENT_STORE, REDIS_URL: redis.url, MAX_REQUESTS: '1000' });
      const [large, small] = [gatewayOf(app), gatewayOf(app)];
      await small.askFor(uniqueKey());
      const key = uniqueKey();
      const answered: string[] = [];
      const calls = Array.from({ length: 20 }, async (_, i) => {
        const { overall_code } = await beginLarge(large, `${key}-${i}`).answer;
        answered.push('large');
        return overall_code;
      });
      // Not by a timer, which a busy machine may delay until all are answered.
      await Promise.race(calls);
      // At once: one after the other, they would take as long as all large calls.
      await Promise.all(
        Array.from({ length: 3 }, async () => {
          await small.askFor(uniqueKey());
          answered.push('small');
        }),
      );

      expect(await Promise.all(calls)).toEqual(Array.from({ length: 20 }, () => 'OK'));
      expect(answered.lastIndexOf('small')).toBeLessThan(answered.lastIndexOf('large'));
    });
  });
});

const MAX = 5;
/** Checks of the first two may wait. */
const NAMES = ['patient-a', 'patient-b', 'hasty-a', 'hasty-b'] as const;

type Descriptors = readonly { readonly name: string; readonly hits: number }[];

/** Asks, lets some ticks pass, or cancels a call: 0 is the last one, 1 the one before. */
type Step =
  { readonly ask: Descriptors } | { readonly ticks: number } | { readonly cancel: number };

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        ask: fc.array(
          fc.record({
            name: fc.constantFrom(...NAMES),
            hits: fc.constantFrom(1, 1, 1, 2, 3, MAX + 1),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ ticks: fc.nat(6) }) },
    { weight: 3, arbitrary: fc.record({ cancel: fc.nat(3) }) },
  ),
  { minLength: 5, maxLength: 40 },
);

describe.each(bothLimiters(redis))(
  'under random calls and cancellations (%s limiter)',
  (_name, settings) => {
    let app: GrpcApp;
    let gateway: Gateway;
    beforeEach(async () => {
      app = await start(
        { ...settings(), LOG_2XX: 'true' },
        {
          rules: [
            ruleForAll({ max_requests_per_window: MAX }),
            {
              key_pattern: '.*/patient-.*',
              key_pattern_is_regex: true,
              max_wait_millis: 86_400_000,
            },
          ],
        },
      );
      gateway = gatewayOf(app);
    });

    test('the approvals of each key match the calls that were answered OK', async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          await expectExact(app, gateway, all);
        }),
        { numRuns: extent(60, 300) },
      );
    });
  },
);

async function expectExact(app: GrpcApp, gateway: Gateway, all: readonly Step[]): Promise<void> {
  const run = uniqueKey();
  const keyOf = (name: string): string => `${run}/${name}`;
  const asked = new Map<string, Descriptors>();
  const calls: ReturnType<Gateway['begin']>[] = [];
  const approvedByAnswer = new Set<string>();

  const ask = (descriptors: Descriptors): void => {
    const id = uniqueKey();
    asked.set(id, descriptors);
    const call = gateway.begin(
      {
        descriptors: descriptors.map(({ name, hits }) =>
          of(keyOf(name), { hits_addend: { value: hits } }),
        ),
      },
      { headers: { 'x-correlation-id': id } },
    );
    call.answer.then(
      ({ overall_code }) => overall_code === 'OK' && approvedByAnswer.add(id),
      () => undefined,
    );
    calls.push(call);
  };

  for (const step of all) {
    if ('ask' in step) ask(step.ask);
    else if ('cancel' in step) calls.at(-1 - step.cancel)?.cancel();
    else for (let tick = 0; tick < step.ticks; tick += 1) await nextTick();
  }
  // Calls that still wait are cancelled. A later answer on the same connection shows that the service has read it all.
  await gateway.askFor(uniqueKey());
  for (const call of calls) call.cancel();
  await Promise.allSettled(calls.map(({ answer }) => answer));
  await gateway.askFor(uniqueKey());

  /** Counted from the log: the service may have answered a call before it read the cancellation. */
  const account = (): Record<string, number> => {
    const counts = Object.fromEntries(NAMES.map((name) => [name, 0]));
    for (const { msg, status, correlationId } of app.log) {
      if (msg !== 'call answered' || status !== 200) continue;
      for (const { name, hits } of asked.get(String(correlationId)) ?? []) counts[name]! += hits;
    }
    return counts;
  };
  const stored = async (): Promise<Record<string, number>> => {
    const states = await Promise.all(NAMES.map((name) => debugState(app.url, keyOf(name))));
    expect(states.map(({ NumWaiting = 0 }) => NumWaiting)).toEqual(NAMES.map(() => 0));
    return Object.fromEntries(
      NAMES.map((name, i) => [name, states[i]!.NumApprovedThisWindow ?? 0]),
    );
  };
  await until(async () => {
    try {
      expect(await stored()).toEqual(account());
      return true;
    } catch {
      return false;
    }
  }).catch(() => undefined);

  expect(await stored()).toEqual(account());
  for (const count of Object.values(account())) expect(count).toBeLessThanOrEqual(MAX);
  const loggedAsApproved = app.log
    .filter(({ status }) => status === 200)
    .map(({ correlationId }) => correlationId);
  for (const id of approvedByAnswer) expect(loggedAsApproved).toContain(id);
}
