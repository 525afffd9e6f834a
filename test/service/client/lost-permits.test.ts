import { once } from 'node:events';

import {
  SluiceClient,
  SluicePermitLostError,
  SluiceUnavailableError,
} from '../../../src/client/index.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { StoredHolds } from '../../support/client/stored-holds.js';
import { useWorkers } from '../../support/client/worker-process.js';
import { untilWaiting } from '../../support/debug-state.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useApp } from '../../support/use-apps.js';

/** The least hold. */
const HOLD_MILLIS = 1000;
const ONE = { maxRequests: 1, holdMillis: HOLD_MILLIS };

const redis = useRedis();
const holds = new StoredHolds(redis);
const serve = useRecordingServers();
const startWorker = useWorkers();
const app = useApp(() => ({
  REDIS_URL: redis.url,
  WINDOW_MILLIS: '100',
  STORE_TIMEOUT_MILLIS: '30000',
}));

/** Work that ends when its permit is lost. @returns why */
const untilLost = async (signal: AbortSignal): Promise<unknown> => {
  // A listener of a signal does not keep a process alive, but this test does.
  if (!signal.aborted) await once(signal, 'abort');
  return signal.reason;
};

/** A `fetch` that notes the methods of its requests. */
function notingFetch(): { methods: string[]; fetch: typeof fetch } {
  const methods: string[] = [];
  const noting: typeof fetch = (input, init) => {
    methods.push(init?.method ?? '');
    return fetch(input, init);
  };
  return { methods, fetch: noting };
}

test('the permit of a worker that is killed is free once its hold lapses, and not before', async () => {
  const key = uniqueKey();
  const client = new SluiceClient(app.url);
  const worker = await startWorker(app.url, key, 'goes on for ever');
  const long = 60_000;
  const waiting = client.wait(key, { holdMillis: long });
  await untilWaiting(app.url, key, 1);
  const lapsesAt = await holds.untilProlonged(key, worker.requestId, HOLD_MILLIS);

  worker.kill('SIGKILL');

  expect(await worker.ended).toBe('SIGKILL');
  const decision = await waiting;
  if (!decision.approved) throw new Error('denied');
  const grantedAt = (await holds.lapsesAt(key, decision.requestId))! - long;
  expect(grantedAt).toBeGreaterThanOrEqual(lapsesAt);
  expect(await holds.lapsesAt(key, worker.requestId)).toBeUndefined();
});

test('a worker that was suspended for longer than its hold loses its permit', async () => {
  const key = uniqueKey();
  const client = new SluiceClient(app.url);
  const worker = await startWorker(app.url, key, 'ends when its permit is lost');
  const waiting = client.wait(key, { holdMillis: 60_000 });
  await untilWaiting(app.url, key, 1);

  worker.kill('SIGSTOP');
  expect(await waiting).toMatchObject({ approved: true });
  worker.kill('SIGCONT');

  expect(await worker.ended).toBe(0);
});

test('work is told that its permit was released by another, and nothing releases it again', async () => {
  const key = uniqueKey();
  const { methods, fetch } = notingFetch();
  const client = new SluiceClient({ url: app.url, fetch });

  const work = async (signal: AbortSignal, requestId: string) => {
    await send(app.url, 'DELETE', `${ratePath(key)}/${requestId}`);
    return { reason: await untilLost(signal), requestId };
  };
  const { reason, requestId } = await client.withPermit(key, work, ONE);

  expect(reason).toBeInstanceOf(SluicePermitLostError);
  expect(reason).toMatchObject({ key, requestId, message: 'the permit no longer counts' });
  expect(methods).not.toContain('DELETE');
});

describe('on a network that fails', () => {
  let proxy: FaultProxy;
  let url: string;
  beforeEach(async () => {
    proxy = await startFaultProxy(Number(new URL(app.url).port));
    url = `http://127.0.0.1:${proxy.port}`;
  });
  afterEach(() => {
    proxy.stop();
  });

  const silence = () => {
    proxy.toServer.swallow();
  };
  const refuse = () => {
    proxy.refuse();
    proxy.cut();
  };

  test.each([
    ['refuses connections', refuse],
    ['is silent', silence],
  ])('a permit is lost if Sluice %s for longer than the hold', async (_, fail) => {
    const key = uniqueKey();
    const { methods, fetch } = notingFetch();
    const client = new SluiceClient({ url, fetch });

    const work = async (signal: AbortSignal, requestId: string) => {
      await holds.untilProlonged(key, requestId, HOLD_MILLIS / 2);
      fail();
      return untilLost(signal);
    };
    const reason = await client.withPermit(key, work, ONE);

    expect(reason).toBeInstanceOf(SluicePermitLostError);
    expect(reason).toMatchObject({ key });
    expect((reason as Error).cause).toBeInstanceOf(SluiceUnavailableError);
    expect(methods).not.toContain('DELETE');
  });

  test('a renewal that fails is sent again, so that the permit is kept', async () => {
    const key = uniqueKey();
    const client = new SluiceClient(url);

    const work = async (signal: AbortSignal, requestId: string) => {
      const before = proxy.toServer.bytesIn;
      silence();
      await until(() => proxy.toServer.bytesIn > before);
      proxy.toServer.pass();
      proxy.cut();
      await holds.untilProlonged(key, requestId, 1000);
      return signal.aborted;
    };

    expect(await client.withPermit(key, work, { maxRequests: 1, holdMillis: 3000 })).toBe(false);
  });
});

test('renewals without an answer follow one another until the hold has lapsed', async () => {
  const server = await serve((call) => {
    if (call.method === 'POST') call.succeed({ request_id: 'id' });
  });
  let underWay = 0;
  let most = 0;
  const counting: typeof fetch = async (input, init) => {
    underWay += 1;
    most = Math.max(most, underWay);
    return fetch(input, init).finally(() => (underWay -= 1));
  };
  const client = new SluiceClient({ url: server.url, fetch: counting });

  const reason = await client.withPermit('a', untilLost, { holdMillis: HOLD_MILLIS });

  expect(reason).toMatchObject({ key: 'a', requestId: 'id' });
  expect(most).toBe(1);
  await until(() => underWay === 0);
});
