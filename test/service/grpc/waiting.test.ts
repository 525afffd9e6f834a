import { bothLimiters, type Environment } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type GrpcApp, ruleForAll, useGrpcApps } from '../../support/grpc-app.js';
import {
  codesOf,
  failureOf,
  type Gateway,
  headersOf,
  of,
  type PendingCall,
  useGateways,
} from '../../support/grpc-gateway.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

/** Longer than all windows in which a waiter of these tests could get its turn. */
const LONG = 86_400_000;

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();

describe.each(bothLimiters(redis))('a descriptor that may wait (%s limiter)', (_name, settings) => {
  let app: GrpcApp;
  let gateway: Gateway;
  let key: string;
  let holder: string;
  const pending: { cancel(): void }[] = [];
  afterEach(() => {
    for (const call of pending.splice(0)) call.cancel();
  });

  /** Starts a service with a full key for which gateways may wait. */
  async function startFull(more: Environment = {}, rule: object = {}): Promise<void> {
    app = await start(
      { ...settings(), ...more },
      { rules: [ruleForAll({ max_wait_millis: LONG, ...rule })] },
    );
    gateway = gatewayOf(app);
    key = uniqueKey();
    holder = await approve(app.url, key);
  }

  const release = (id: string, of = key): Promise<unknown> =>
    send(app.url, 'DELETE', `${ratePath(of)}/${id}`);

  async function wait(...args: Parameters<Gateway['begin']>): Promise<PendingCall> {
    const before = (await debugState(app.url, key)).NumWaiting!;
    const call = gateway.begin(...args);
    pending.push(call);
    await untilWaiting(app.url, key, before + 1);
    return call;
  }

  const waitForKey = (): Promise<PendingCall> => wait({ descriptors: [of(key)] });

  async function waitOverHttp() {
    const before = (await debugState(app.url, key)).NumWaiting!;
    const request = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    pending.push({ cancel: () => request.disconnect() });
    await untilWaiting(app.url, key, before + 1);
    return request;
  }

  test('is approved when its turn comes, also if its gateway has no timeout', async () => {
    await startFull();
    const call = await waitForKey();
    await release(holder);

    expect(await call.answer).toMatchObject({
      overall_code: 'OK',
      statuses: [{ code: 'OK', limit_remaining: 0 }],
    });
    expect(await debugState(app.url, key)).toMatchObject({
      NumApprovedThisWindow: 1,
      NumWaiting: 0,
    });
  });

  test('stands in one queue with waiters over HTTP', async () => {
    await startFull();
    const served: string[] = [];
    for (const name of ['gateway 1', 'HTTP 1', 'gateway 2', 'HTTP 2']) {
      const { answer } = name.startsWith('HTTP') ? await waitOverHttp() : await waitForKey();
      void answer.then(() => served.push(name));
    }
    // Each check makes room for one more, and the head of the queue gets it before the check itself.
    for (const count of [1, 2, 3, 4]) {
      await send(app.url, 'POST', `${ratePath(key)}?maxRequests=${count + 1}`);
      await until(() => served.length === count);
    }

    expect(served).toEqual(['gateway 1', 'HTTP 1', 'gateway 2', 'HTTP 2']);
  });

  test('is denied at once if its turn would come too late, with the time of its turn', async () => {
    await startFull({}, { max_wait_millis: 60_000 });
    const response = await gateway.askFor(key);

    expect(codesOf(response)).toEqual(['OVER_LIMIT']);
    expect(Number(headersOf(response)['Retry-After'])).toBeGreaterThan(3500);
    expect(await debugState(app.url, key)).toMatchObject({ NumWaiting: 0 });
  });

  test('fails if there are MAX_WAITERS waiters already', async () => {
    await startFull({ MAX_WAITERS: '1' });
    await waitForKey();

    expect(await failureOf(gateway.askFor(key))).toEqual([
      'UNAVAILABLE',
      'too many waiters on this replica',
    ]);
    const metrics = await scrape(app.url);
    expect(metrics.value('ratelimit_failed_checks_total', { reason: 'too_many_waiters' })).toBe(1);
    expect(await debugState(app.url, key)).toMatchObject({ NumWaiting: 1 });
  });
});
