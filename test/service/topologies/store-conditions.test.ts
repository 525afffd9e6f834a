import { randomUUID } from 'node:crypto';

import { type TestApp, startTestApp } from '../../support/app.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

interface Condition {
  readonly name: string;
  readonly begin: (server: RedisProcess) => Promise<unknown>;
  readonly end: (server: RedisProcess) => Promise<unknown>;
}

/** Starts a script that runs until it is killed. Its reply is not awaited. */
function runEndlessly(server: RedisProcess): void {
  const client = server.connect();
  client.on('error', () => undefined);
  client.eval('while true do end', 0).then(
    () => undefined,
    () => {
      client.disconnect();
    },
  );
}

const CONDITIONS: Condition[] = [
  {
    name: 'has become a replica (READONLY)',
    begin: (server) => server.command('REPLICAOF', '127.0.0.1', 1),
    end: (server) => server.command('REPLICAOF', 'NO', 'ONE'),
  },
  {
    name: 'lacks the replicas it must have (NOREPLICAS)',
    begin: (server) => server.command('CONFIG', 'SET', 'min-replicas-to-write', 1),
    end: (server) => server.command('CONFIG', 'SET', 'min-replicas-to-write', 0),
  },
  {
    name: 'runs a script that does not end (BUSY)',
    begin: async (server) => {
      await server.command('CONFIG', 'SET', 'busy-reply-threshold', 1);
      runEndlessly(server);
      await until(() =>
        server.command('PING').then(
          () => false,
          (error: unknown) => String(error).includes('BUSY'),
        ),
      );
    },
    end: (server) => server.command('SCRIPT', 'KILL'),
  },
  {
    name: 'hangs',
    begin: (server) => {
      server.signal('SIGSTOP');
      return Promise.resolve();
    },
    end: (server) => {
      server.signal('SIGCONT');
      return Promise.resolve();
    },
  },
];

describeWithRedisProgram('a service whose Redis', () => {
  describe.each(CONDITIONS)('$name', ({ begin: beginCondition, end: endCondition }) => {
    let server: RedisProcess;
    let app: TestApp;
    const status = async (method: string, path: string): Promise<number> =>
      (await send(app.url, method, path)).status;

    beforeAll(async () => {
      server = await startRedisProcess();
      app = await startTestApp({
        REDIS_URL: server.url,
        WINDOW_MILLIS: '3600000',
        // So long that a busy machine does not look like an outage.
        STORE_TIMEOUT_MILLIS: '1000',
      });
      expect(await status('POST', ratePath(uniqueKey()))).toBe(200);
      expect(await status('GET', '/readyz')).toBe(200);
    });
    afterAll(async () => {
      await app.stop(0);
      await server.stop();
    });

    test('answers checks and releases with 503, is not ready, and recovers by itself', async () => {
      await beginCondition(server);
      for (let i = 0; i < 5; i += 1) {
        const check = await send(app.url, 'POST', ratePath(uniqueKey()));
        expect(check.status).toBe(503);
        expect(check.headers['retry-after']).toMatch(/^[1-9]\d*$/);
      }
      expect(await status('DELETE', `${ratePath(uniqueKey())}/${randomUUID()}`)).toBe(503);
      expect(await status('GET', '/readyz')).toBe(503);
      expect(await status('GET', '/healthz')).toBe(200);

      await endCondition(server);
      await until(async () => (await status('POST', ratePath(uniqueKey()))) === 200);
      await until(async () => (await status('GET', '/readyz')) === 200);
      const changes = app.log
        .map(({ msg }) => msg)
        .filter((msg) => /^store is (down|up)/.test(msg as string));
      expect(changes).toEqual([
        'store is down; not asked until it is up again',
        'store is up again',
      ]);
    });

    test('keeps its waiters, and serves them when their turn comes', async () => {
      const key = uniqueKey();
      const approved = await approve(app.url, key, '?maxRequests=1');
      const waiter = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
      await untilWaiting(app.url, key, 1);
      await beginCondition(server);
      for (let i = 0; i < 3; i += 1) {
        expect(await status('POST', ratePath(uniqueKey()))).toBe(503);
      }
      await endCondition(server);

      let isServed = false;
      waiter.answer.then(
        () => (isServed = true),
        () => undefined,
      );
      // A release that got a 503 may still have run.
      const path = `${ratePath(key)}/${approved}`;
      await until(async () => (await status('DELETE', path)) === 200 || isServed);
      expect((await waiter.answer).status).toBe(200);
    });
  });
});
