import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { CHILD_PATH } from '../../support/child-environment.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import {
  killReplicas,
  type ReplicaProcess,
  startReplica,
  TEST_SETTINGS,
} from '../../support/replica-process.js';
import { storedQueue } from '../../support/stored-queue.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const ONE_HOUR = '3600000';

const redis = useRedis();
afterEach(killReplicas);

type Environment = Readonly<Record<string, string>>;

function start(environment: Environment): Promise<ReplicaProcess> {
  return startReplica({
    WINDOW_MILLIS: ONE_HOUR,
    MAX_REQUESTS: '1',
    SHUTDOWN_GRACE_MILLIS: ONE_HOUR,
    ...environment,
  });
}

async function startStopping(replica: ReplicaProcess): Promise<void> {
  replica.signal('SIGTERM');
  await replica.logged(({ msg }) => msg === 'stopping');
}

/** Whether its port no longer accepts connections. */
function isRefused({ url }: ReplicaProcess): Promise<boolean> {
  return send(url, 'GET', '/healthz').then(
    () => false,
    (error: unknown) => (error as NodeJS.ErrnoException).code === 'ECONNREFUSED',
  );
}

describe.each(bothLimiters(redis))('a replica that stops (%s limiter)', (_name, settings) => {
  test.each(['SIGTERM', 'SIGINT'] as const)('ends with code 0 on %s', async (signal) => {
    const replica = await start(settings());
    await approve(replica.url, uniqueKey());

    expect(await replica.kill(signal)).toBe(0);
    const messages = replica.log.map(({ msg }) => String(msg));
    // The first call to Redis tells how scripts are run.
    expect(messages.filter((message) => !message.startsWith('Redis runs the scripts'))).toEqual([
      'serving',
      'stopping',
      'stopped',
    ]);
    await expect(send(replica.url, 'GET', '/healthz')).rejects.toThrow('ECONNREFUSED');
  });

  test('approves waiters whose turn comes within the grace', async () => {
    const replica = await start({ ...settings(), WINDOW_MILLIS: '1000' });
    const key = uniqueKey();
    await approve(replica.url, key);
    // Three, with one approval in each window: the last has to wait for two windows at least.
    const waiting = [1, 2, 3].map(() => begin(replica.url, 'POST', `/rate/${key}?canWait=true`));
    await Promise.race(waiting.map(({ answer }) => answer));
    await startStopping(replica);
    const answers = await Promise.all(waiting.map(({ answer }) => answer));

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await replica.kill('SIGCONT')).toBe(0);
  });

  test('ends the grace at once on a second signal', async () => {
    const replica = await start(settings());
    const key = uniqueKey();
    await approve(replica.url, key);
    const waiting = begin(replica.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(replica.url, key, 1);
    await startStopping(replica);

    expect(await replica.kill('SIGTERM')).toBe(0);
    expect((await waiting.answer).status).toBe(503);
  });
});

test('a step of the stop that fails skips no other, and ends the process with code 1', async () => {
  const replica = await start({
    SHUTDOWN_GRACE_MILLIS: '0',
    NODE_OPTIONS: `--import ${new URL('../../support/broken-close.mjs', import.meta.url).href}`,
  });
  const key = uniqueKey();
  await approve(replica.url, key);
  const waiting = begin(replica.url, 'POST', `/rate/${key}?canWait=true`);
  await untilWaiting(replica.url, key, 1);

  expect(await replica.kill('SIGTERM')).toBe(1);
  expect((await waiting.answer).status).toBe(503);
  expect(replica.log.at(-1)).toMatchObject({
    msg: 'stopped with an error',
    err: { message: 'Error: idle connections are unknown' },
  });
});

/** These tests do not depend on the store of the limits. */
describe('the port of a replica that stops', () => {
  test('accepts no new connections while the replica waits for its waiters', async () => {
    const replica = await start({});
    const key = uniqueKey();
    await approve(replica.url, key);
    const waiting = begin(replica.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(replica.url, key, 1);
    await startStopping(replica);

    // The log line comes a moment before the port closes.
    await until(() => isRefused(replica));
    waiting.disconnect();
    expect(await replica.kill('SIGINT')).toBe(0);
  });

  test('serves during the delay, not ready, and asks clients to close their connections', async () => {
    const replica = await start({ SHUTDOWN_DELAY_MILLIS: ONE_HOUR });
    await startStopping(replica);

    expect((await send(replica.url, 'GET', '/readyz')).status).toBe(503);
    const answer = await send(replica.url, 'POST', ratePath(uniqueKey()));
    expect(answer.status).toBe(200);
    expect(answer.headers.connection).toBe('close');
    // A second signal ends the delay.
    expect(await replica.kill('SIGTERM')).toBe(0);
  });

  test('answers a request that was half sent when the replica began to stop', async () => {
    const replica = await start({});
    const key = uniqueKey();
    const holder = await approve(replica.url, key);
    const waiting = begin(replica.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(replica.url, key, 1);
    const connection = await openConnection(replica.url);
    const text = requestText('DELETE', `${ratePath(key)}/${holder}`);
    connection.write(text.slice(0, -2));
    // Answered on another connection, so the first has been accepted before.
    await send(replica.url, 'GET', '/healthz');
    await startStopping(replica);
    connection.write(text.slice(-2));
    await connection.closed;

    expect(connection.received).toMatch(/^HTTP\/1\.1 200 /);
    expect(connection.received).toMatch(/^Connection: close\r$/m);
    expect((await waiting.answer).status).toBe(200);
    expect(await replica.kill('SIGCONT')).toBe(0);
  });

  test.each([
    ['has sent nothing', ''],
    ['has sent half a request', 'GET /healthz HTTP/1.1\r\nHost:'],
  ])('closes even if a client that %s keeps its connection', async (_what, text) => {
    const replica = await start({ SHUTDOWN_GRACE_MILLIS: '0' });
    const connection = await openConnection(replica.url);
    connection.write(text);
    // Answered on another connection, so the first has been accepted before.
    await send(replica.url, 'GET', '/healthz');

    expect(await replica.kill('SIGTERM')).toBe(0);
    await connection.closed;
  });
});

/** The replica id of each waiter in the queue, in the order of the queue. */
async function queueOf(key: string): Promise<string[]> {
  const { waiting } = await storedQueue(redis.client, new KeyNaming('sluice:').namesOf(key));
  return waiting.map(([waiter]) => waiter.split('@')[1]!);
}

async function leasesOf(key: string): Promise<string[]> {
  return redis.client.hkeys(`sluice:{${key}}:replicas`);
}

async function leaderOf(key: string): Promise<string | null> {
  return redis.client.get(`mutex:sluice:{${key}}:leader`);
}

describe('a replica on Redis that stops', () => {
  const start = (environment: Environment = {}): Promise<ReplicaProcess> =>
    startReplica({
      REDIS_URL: redis.url,
      WINDOW_MILLIS: ONE_HOUR,
      MAX_REQUESTS: '1',
      SHUTDOWN_GRACE_MILLIS: '0',
      STORE_TIMEOUT_MILLIS: '60000',
      // So long that no lease ends during the test.
      REPLICA_LEASE_MILLIS: ONE_HOUR,
      ...environment,
    });

  test('leaves no waiters, leases or leader in Redis if it is the only one', async () => {
    const replica = await start();
    const keys = [uniqueKey(), uniqueKey()];
    const waiting = [];
    for (const key of keys) {
      await approve(replica.url, key);
      waiting.push(begin(replica.url, 'POST', `/rate/${key}?canWait=true`));
      await untilWaiting(replica.url, key, 1);
      await until(() => leaderOf(key).then((leader) => leader !== null));
    }
    expect(await replica.kill('SIGTERM')).toBe(0);

    for (const { answer } of waiting) expect((await answer).status).toBe(503);
    for (const key of keys) {
      expect(await queueOf(key)).toEqual([]);
      expect(await leasesOf(key)).toEqual([]);
      expect(await leaderOf(key)).toBeNull();
    }
    // The names that are left expire: the state, the approvals, and the withdrawn waiters.
    const names = await redis.client.keys('*');
    for (const key of keys) {
      expect(names.filter((name) => name.includes(key)).sort()).toEqual([
        `sluice:{${key}}`,
        `sluice:{${key}}:requests`,
        `sluice:{${key}}:requests:1`,
      ]);
    }
  });

  test('answers requests in flight', async () => {
    const replica = await start({ SHUTDOWN_GRACE_MILLIS: '3600000' });
    await approve(replica.url, uniqueKey());
    await redis.client.call('CLIENT', 'PAUSE', '3600000', 'WRITE');
    const key = uniqueKey();
    const inFlight = begin(replica.url, 'POST', `/rate/${key}`);
    await until(async () => /^blocked_clients:1\r$/m.test(await redis.client.info('clients')));
    replica.signal('SIGTERM');
    await replica.logged(({ msg }) => msg === 'stopping');
    await redis.client.call('CLIENT', 'UNPAUSE');

    expect((await inFlight.answer).status).toBe(200);
    expect(await replica.kill('SIGCONT')).toBe(0);
  });

  test('ends even if Redis can not be reached', async () => {
    const replica = await start({
      REDIS_URL: 'redis://127.0.0.1:1',
      STORE_TIMEOUT_MILLIS: '500',
    });

    expect((await send(replica.url, 'POST', `/rate/${uniqueKey()}?canWait=true`)).status).toBe(503);
    expect(await replica.kill('SIGTERM')).toBe(0);
  });
});

test('the grace ends even if garbage is collected during it', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const app = await startTestApp({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' });
  const key = uniqueKey();
  await approve(app.url, key);
  const waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true`);
  await untilWaiting(app.url, key, 1);

  let isStopped = false;
  const stopped = app.stop(500).finally(() => (isStopped = true));
  await until(() => {
    collectGarbage();
    return isStopped;
  });
  await stopped;
  expect((await waiting.answer).status).toBe(503);
});

describe('npm start', () => {
  let npm: ChildProcess;
  // Its group, with a service that npm has left.
  afterEach(() => {
    try {
      process.kill(-npm.pid!, 'SIGKILL');
    } catch (error) {
      expect(error).toMatchObject({ code: 'ESRCH' });
    }
  });

  test('stops the service when npm gets SIGTERM', async () => {
    npm = spawn('npm', ['start'], {
      detached: true,
      env: { PATH: CHILD_PATH, HOME: process.env.HOME, ...TEST_SETTINGS },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let log = '';
    npm.stdout!.on('data', (data: Buffer) => (log += data.toString()));
    await until(() => log.includes('"msg":"serving"'));
    npm.kill('SIGTERM');

    // Its output may follow its exit.
    const [code] = (await once(npm, 'close')) as [number | null];
    expect(code).toBe(0);
    expect(log).toContain('"msg":"stopped"');
  });

  test('is not the only script without a shell between npm and its program', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      scripts: Readonly<Record<string, string>>;
    };
    // A shell between the two does not pass signals on.
    const behindShell = Object.entries(scripts).filter(([, script]) => /^node [^&]*$/.test(script));
    expect(behindShell).toEqual([]);
  });
});
