import { type Clock, systemClock } from '../../src/common/clock.js';
import { parseSettings } from '../../src/config/settings.js';
import type { UnreadableRequest } from '../../src/http/server/unreadable-requests.js';
import { type KeptAliveServer, listen, type ListenOptions } from '../../src/http/server/server.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../src/limiter/memory/memory-limiter.js';
import type { DropReason } from '../../src/metrics/prometheus-metrics.js';
import { httpAppOver } from './http-app.js';
import { approve } from './http-client.js';
import { holdToDocument } from './openapi/held-to-document.js';
import { uniqueKey } from './unique-key.js';
import { until } from './until.js';
import { policiesWith } from './policies.js';

/** The HTTP surface on the service's own server, with a limiter at hand. */
export interface HttpService {
  readonly url: string;
  readonly limiter: Limiter;
  /** The unreadable requests so far. */
  readonly unreadable: readonly UnreadableRequest[];
  /** How many requests were deferred, so far. */
  readonly deferred: number;
  /** Why connections were dropped, so far. */
  readonly drops: readonly DropReason[];
  readonly server: KeptAliveServer;
  /** Stops it before its test ends. Resolves when its last connection has ended. */
  stop(): Promise<void>;
}

interface Options extends Partial<Pick<ListenOptions, 'timeouts' | 'keyPair'>> {
  readonly limiter?: Limiter;
  readonly maxConnections?: number;
  readonly maxInFlight?: number;
}

/** One approval per hour, and ten waiters. */
export function smallLimiter(clock: Clock = systemClock): MemoryLimiter {
  const limits = { windowMillis: 3_600_000, maxRequests: 1, maxRequestsInQueue: 10 };
  return new MemoryLimiter(
    policiesWith(() => limits),
    clock,
  );
}

/** Services for the tests of one file, each of which ends with its test. */
export function useHttpServices(): (options?: Options) => Promise<HttpService> {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });

  return async (options = {}) => {
    const {
      limiter = smallLimiter(),
      maxConnections = 20_000,
      maxInFlight = 100,
      ...rest
    } = options;
    const unreadable: UnreadableRequest[] = [];
    let deferred = 0;
    const drops: DropReason[] = [];
    const server = await listen(httpAppOver(limiter), {
      setting: 'PORT',
      port: 0,
      host: '127.0.0.1',
      onUnreadable: (request) => unreadable.push(request),
      bounds: {
        maxConnections,
        maxInFlight,
        onDropped: (reason) => drops.push(reason),
        onDeferred: () => (deferred += 1),
      },
      ...rest,
    });
    const scheme = options.keyPair ? 'https' : 'http';
    const url = `${scheme}://127.0.0.1:${server.port}`;
    const letGo = holdToDocument(url, parseSettings({}));
    const stop = async (): Promise<void> => {
      const closed = server.stopAccepting();
      await limiter.close();
      server.cutConnections();
      await closed;
      letGo();
    };
    stops.push(stop);
    return {
      url,
      limiter,
      unreadable,
      get deferred() {
        return deferred;
      },
      drops,
      server,
      stop,
    };
  };
}

/** A key without room, and the request id that holds its approval. */
export async function fullKey({ url }: HttpService): Promise<{ key: string; holder: string }> {
  const key = uniqueKey();
  return { key, holder: await approve(url, key) };
}

export async function untilWaiting({ limiter }: HttpService, count: number): Promise<void> {
  await until(() => limiter.waiting() === count);
}
