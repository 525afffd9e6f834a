import { type ChildProcess, spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import {
  SluiceClient,
  SluicePermitLostError,
  SluiceUnavailableError,
} from '../../../clients/node/src/index.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { StoredHolds } from '../../support/client/stored-holds.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const PROGRAM = fileURLToPath(
  new URL('../../support/client/work-with-permit.mjs', import.meta.url),
);

/** A process whose work has a permit of a key, with a maximum of one and a hold of 3000 ms. */
export interface Worker {
  readonly requestId: string;
  /** Resolves when it has ended. @returns its exit code, or the signal that ended it */
  readonly ended: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
}

export type Work = 'ends when its permit is lost' | 'has nothing to wait for' | 'ends';

/** Starts workers, which are killed after each test. Each has begun its work when its promise resolves. */
function useWorkers(): (url: string, key: string, work: Work) => Promise<Worker> {
  const running = new Set<ChildProcess>();
  afterEach(() => {
    for (const child of running) child.kill('SIGKILL');
    running.clear();
  });
  return async (url, key, work) => {
    const child = spawn(process.execPath, [PROGRAM, url, key, work], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    running.add(child);
    const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
    const [requestId] = (await once(createInterface(child.stdout), 'line')) as [string];
    return { requestId, ended, kill: (signal) => void child.kill(signal) };
  };
}

const WINDOW_MILLIS = 100;
/** So long that a machine that stalls between two renewals does not end it. The first renewal comes after a third. */
const HOLD_MILLIS = 4000;
/** What one renewal puts the end of a hold off by, at least. */
const RENEWED_MILLIS = 1000;
/** The least hold. */
const LEAST_HOLD_MILLIS = 1000;
const ONE = { maxRequests: 1, holdMillis: HOLD_MILLIS };

const redis = useRedis();
const holds = new StoredHolds(redis);
const serve = useRecordingServers();
const startWorker = useWorkers();
const rules = [
  { key_pattern: 'shadow', shadow: true, max_requests_per_window: 1 },
  { key_pattern: 'no holds', requests_can_hold: false },
];
const settings = () => ({
  REDIS_URL: redis.url,
  WINDOW_MILLIS: String(WINDOW_MILLIS),
  STORE_TIMEOUT_MILLIS: '30000',
});
const replicas = [useApp(settings, { rules }), useApp(settings, { rules })] as const;
let clients: readonly SluiceClient[];
let client: SluiceClient;
beforeAll(() => {
  clients = replicas.map(({ url }) => new SluiceClient(url));
  client = clients[0]!;
});

const state = (key: string) => debugState(replicas[0].url, key);

describe('a permit', () => {
  test('is held while the work goes on, over windows and renewals, and is then free', async () => {
    const key = uniqueKey();

    const work = async (signal: AbortSignal, requestId: string) => {
      // By two renewals.
      await holds.untilProlonged(key, requestId, HOLD_MILLIS / 2);
      const other = await client.check(key);
      return [signal.aborted, other.approved, (await state(key)).NumHeld];
    };

    expect(await client.withPermit(key, work, ONE)).toEqual([false, false, 1]);
    expect(await state(key)).not.toHaveProperty('NumHeld');
    expect(await client.check(key)).toMatchObject({ approved: true });
  });

  test('is held for 30 s by default', async () => {
    const key = uniqueKey();
    let lapsesAt: number | undefined;
    const askedAt = await redisMillis();

    await client.withPermit(key, async (_signal, requestId) => {
      lapsesAt = await holds.lapsesAt(key, requestId);
    });

    expect(lapsesAt).toBeGreaterThanOrEqual(askedAt + 30_000);
    expect(lapsesAt).toBeLessThanOrEqual((await redisMillis()) + 30_000);
  });

  test('of a key that forbids holds is rejected, unless holds are turned off', async () => {
    await expect(client.withPermit('no holds', () => 'done')).rejects.toMatchObject({
      status: 403,
      message: 'holding approvals is disabled for this key',
    });

    expect(await client.withPermit('no holds', () => 'done', { holdMillis: false })).toBe('done');
  });

  test('that a shadow rule let pass is never lost', async () => {
    const outcome = await client.withPermit(
      'shadow',
      (_, counted) =>
        client.withPermit(
          'shadow',
          async (signal, uncounted) => {
            // By then a renewal of the uncounted one would have failed.
            await holds.untilProlonged('shadow', counted, RENEWED_MILLIS);
            return [signal.aborted, await client.renew('shadow', uncounted)];
          },
          { holdMillis: LEAST_HOLD_MILLIS },
        ),
      { holdMillis: HOLD_MILLIS },
    );

    expect(outcome).toEqual([false, false]);
  });
});

describe('a permit whose turn came after a wait', () => {
  const HOLD = { holdMillis: 3000 };
  /** The approval of a wait that took longer than a renewal may. */
  const waited = async () => {
    const server = await serve();
    let isAtWork = false;
    const done = new SluiceClient(server.url).withPermit('a', () => (isAtWork = true), HOLD);
    const wait = await server.call(0);
    const askedAt = performance.now();
    await until(() => performance.now() - askedAt > HOLD.holdMillis / 3);
    wait.succeed({ request_id: 'id' });
    const renewal = await server.call(1);
    return { server, done, renewal, isAtWork: () => isAtWork };
  };

  test('is renewed before the work begins', async () => {
    const { server, done, renewal, isAtWork } = await waited();
    expect(renewal).toMatchObject({ method: 'PUT', path: '/rate/a/id' });
    expect(isAtWork()).toBe(false);

    renewal.succeed({ request_id: 'id', holdMillis: 3000 });

    (await server.call(2)).answer(() => ({ status: 200 }));
    expect(await done).toBe(true);
  });

  test('is lost without any work if it has lapsed meanwhile', async () => {
    const { server, done, renewal, isAtWork } = await waited();
    renewal.fail(404, 'request not found');

    (await server.call(2)).answer(() => ({ status: 404, error: 'request not found' }));
    await expect(done).rejects.toMatchObject({ name: 'SluicePermitLostError', requestId: 'id' });
    expect(isAtWork()).toBe(false);
  });
});

describe("the caller's signal", () => {
  test('aborts the work, and the permit is held until the work ends', async () => {
    const key = uniqueKey();
    const leaving = new AbortController();
    let reason: unknown;
    let held: number | undefined;
    const work = async (signal: AbortSignal) => {
      leaving.abort(new Error('changed my mind'));
      reason = signal.reason;
      held = (await state(key)).NumHeld;
      signal.throwIfAborted();
    };

    const done = client.withPermit(key, work, { ...ONE, signal: leaving.signal });

    await expect(done).rejects.toThrow('changed my mind');
    expect([reason, held]).toEqual([new Error('changed my mind'), 1]);
    expect(await state(key)).not.toHaveProperty('NumHeld');
  });

  test('ends the wait', async () => {
    const key = uniqueKey();
    const leaving = new AbortController();
    await client.permit(key, { maxRequests: 1, holdMillis: 60_000 });
    let isDone = false;
    const work = () => (isDone = true);
    const waiting = client.withPermit(key, work, { signal: leaving.signal });
    await untilWaiting(replicas[0].url, key, 1);

    leaving.abort();

    await expect(waiting).rejects.toBe(leaving.signal.reason);
    await untilWaiting(replicas[0].url, key, 0);
    expect(isDone).toBe(false);
  });

  test('has no listeners left when the work has ended, whose own signal stays', async () => {
    const key = uniqueKey();
    const { signal } = new AbortController();
    const work = async (own: AbortSignal, requestId: string) => {
      await holds.untilProlonged(key, requestId, RENEWED_MILLIS);
      return own;
    };

    const own = await client.withPermit(key, work, { ...ONE, signal });

    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(own.aborted).toBe(false);
  });
});

describe('a process', () => {
  test('ends when its work has ended', async () => {
    const worker = await startWorker(replicas[0].url, uniqueKey(), 'ends');

    expect(await worker.ended).toBe(0);
  });

  test('is not kept alive by a permit alone', async () => {
    const worker = await startWorker(replicas[0].url, uniqueKey(), 'has nothing to wait for');

    // Node's exit code if a module waits for what can't come.
    expect(await worker.ended).toBe(13);
  });
});

async function redisMillis(): Promise<number> {
  const [seconds, micros] = await redis.client.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

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

test('a worker that was suspended for longer than its hold loses its permit', async () => {
  const key = uniqueKey();
  const worker = await startWorker(replicas[0].url, key, 'ends when its permit is lost');
  const waiting = client.wait(key, { holdMillis: 60_000 });
  await untilWaiting(replicas[0].url, key, 1);

  worker.kill('SIGSTOP');
  expect(await waiting).toMatchObject({ approved: true });
  worker.kill('SIGCONT');

  expect(await worker.ended).toBe(0);
});

test('work is told that its permit was released by another, and nothing releases it again', async () => {
  const key = uniqueKey();
  const { methods, fetch } = notingFetch();
  const client = new SluiceClient({ url: replicas[0].url, fetch });

  const work = async (signal: AbortSignal, requestId: string) => {
    await send(replicas[0].url, 'DELETE', `${ratePath(key)}/${requestId}`);
    return { reason: await untilLost(signal), requestId };
  };
  const { reason, requestId } = await client.withPermit(key, work, ONE);

  expect(reason).toBeInstanceOf(SluicePermitLostError);
  expect(reason).toMatchObject({ key, requestId, message: 'the permit no longer counts' });
  expect(methods).not.toContain('DELETE');
});

describe('on a network that fails', () => {
  const proxies: FaultProxy[] = [];
  afterEach(() => {
    for (const proxy of proxies.splice(0)) proxy.stop();
  });
  const startProxy = async () => {
    const proxy = await startFaultProxy(Number(new URL(replicas[0].url).port));
    proxies.push(proxy);
    return { proxy, url: `http://127.0.0.1:${proxy.port}` };
  };

  const silence = (proxy: FaultProxy) => {
    proxy.toServer.swallow();
  };
  const refuse = (proxy: FaultProxy) => {
    proxy.refuse();
    proxy.cut();
  };

  test('a permit is lost if Sluice refuses connections or is silent for longer than the hold', async () => {
    const loseBy = async (fail: (proxy: FaultProxy) => void) => {
      const key = uniqueKey();
      const { proxy, url } = await startProxy();
      const { methods, fetch } = notingFetch();
      const client = new SluiceClient({ url, fetch });

      const work = (signal: AbortSignal) => {
        fail(proxy);
        return untilLost(signal);
      };
      const reason = await client.withPermit(key, work, ONE);

      expect(reason).toBeInstanceOf(SluicePermitLostError);
      expect(reason).toMatchObject({ key });
      expect((reason as Error).cause).toBeInstanceOf(SluiceUnavailableError);
      expect(methods).not.toContain('DELETE');
    };

    // At the same time, since each takes as long as the hold.
    await Promise.all([loseBy(refuse), loseBy(silence)]);
  });

  test('a renewal that fails is sent again, so that the permit is kept', async () => {
    const key = uniqueKey();
    const { proxy, url } = await startProxy();
    const client = new SluiceClient(url);

    const work = async (signal: AbortSignal, requestId: string) => {
      const before = proxy.toServer.bytesIn;
      silence(proxy);
      await until(() => proxy.toServer.bytesIn > before);
      proxy.toServer.pass();
      proxy.cut();
      await holds.untilProlonged(key, requestId, RENEWED_MILLIS);
      return signal.aborted;
    };

    expect(await client.withPermit(key, work, ONE)).toBe(false);
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

  const reason = await client.withPermit('a', untilLost, { holdMillis: LEAST_HOLD_MILLIS });

  expect(reason).toMatchObject({ key: 'a', requestId: 'id' });
  expect(most).toBe(1);
  await until(() => underWay === 0);
});
