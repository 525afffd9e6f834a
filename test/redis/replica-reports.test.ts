import type { Redis } from 'ioredis';

import { UNKNOWN_HISTORY } from '../../src/redis/caller-history.js';
import { connectToPrimary } from '../../src/redis/connections/primary-connections.js';
import type { Connections } from '../../src/redis/connections/connections.js';
import { KeyNaming } from '../../src/redis/shared/key-names.js';
import { ReplicaReports } from '../../src/redis/replica-reports.js';
import { Scripts } from '../../src/redis/scripts/scripts.js';
import { ManualClock } from '../support/manual-clock.js';
import { recordLog } from '../support/recorded-log.js';
import { scriptClientParts } from '../support/script-client-parts.js';
import { unguarded, unobserved } from '../support/unguarded.js';
import { uniqueKey } from '../support/unique-key.js';
import { until } from '../support/until.js';
import { useRedis } from '../support/use-redis.js';
import { keyLimits } from '../support/limits.js';

const redis = useRedis();

const SETTINGS = {
  limitsOf: () => keyLimits({ windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 1 }),
  leaseMillis: 5000,
  maxIdsPerKey: 1000,
  maxHoldsPerKey: 100,
  maxGroupsPerKey: 100,
  wakeArgument: 'PUBLISH :wake',
  historyOf: () => UNKNOWN_HISTORY,
  observer: unobserved,
  timeOf: () => 0,
};

const clock = new ManualClock(1_000_000);
let naming: KeyNaming;
let names: KeyNaming['reports'];
let connected: Connections[];
beforeEach(() => {
  naming = new KeyNaming(`${uniqueKey()}:`);
  names = naming.reports;
  connected = [];
});
afterEach(() => Promise.all(connected.map((connections) => connections.close())));

interface Replica {
  readonly reports: ReplicaReports;
  /** How often it has reported. */
  readonly written: () => number;
  /** The keys that somebody looked at, once for each question. */
  readonly watched: readonly string[];
  readonly end: () => Promise<void>;
}

/** A replica whose reports are its name and a number. */
async function start(replicaId: string, guard = unguarded): Promise<Replica> {
  const { logger } = recordLog();
  const connections = connectToPrimary(
    { mode: 'standalone', urls: [redis.url], database: 0, timeoutMillis: 10_000, name: 'test' },
    logger,
  );
  connected.push(connections);
  await until(() => connections.commands.status === 'ready');
  let written = 0;
  const watched: string[] = [];
  const reports = new ReplicaReports({
    naming,
    replicaId,
    commands: connections.commands,
    messages: {
      subscriber: connections.subscriber,
      publish: (channel, message) => connections.publish(channel, message),
    },
    guard,
    scripts: new Scripts(scriptClientParts(connections.commands as Redis), guard, {
      ...SETTINGS,
      replicaId,
    }),
    clock,
    logger,
    own: {
      report: () => Promise.resolve(`${replicaId} ${(written += 1)}`),
      watch: (key) => watched.push(key),
      share: (key, write) => write({ minute: 7, text: `${replicaId} of ${key}` }),
    },
  });
  const count = connected.length;
  await until(async () => (await redis.client.pubsub('NUMSUB', names.channel))[1] === count);
  return {
    reports,
    written: () => written,
    watched,
    end: async () => {
      await connections.close();
      connected.splice(connected.indexOf(connections), 1);
      await until(
        async () => (await redis.client.pubsub('NUMSUB', names.channel))[1] === count - 1,
      );
    },
  };
}

/** Reads after a time, and lets the replicas report before. */
async function readAfter(
  millis: number,
  { reports }: Replica,
  keys: readonly string[] = [],
): Promise<string[]> {
  await clock.advance(millis);
  const reading = reports.read(keys);
  const ended = reading.then(() => true);
  // The first read waits for the answers to its question.
  while (!(await Promise.race([ended, new Promise((resolve) => setImmediate(resolve, false))]))) {
    // No further, however long Redis takes: after a second each replica would report again.
    if (clock.isAwaited) await clock.advance(10);
  }
  return (await reading).map(({ text }) => text);
}

test('a reader gets the reports of the others', async () => {
  const [a, b] = [await start('a'), await start('b')];
  await start('c');
  const read = await until(async () => {
    const found = await readAfter(2000, a);
    return found.length === 2 && found;
  });
  expect(read.map((text) => text[0]).sort()).toEqual(['b', 'c']);
  expect(b.written()).toBeGreaterThan(0);
});

test('only the first question for a while waits for answers, and only if there are others', async () => {
  const a = await start('a');
  expect(await a.reports.read([])).toEqual([]);
  await start('b');
  await until(async () => (await readAfter(20_000, a)).length === 1);
  await clock.advance(2000);
  expect(await a.reports.read([])).toHaveLength(1);
});

test('a replica reports once a second at most, however many ask', async () => {
  const [a, b] = [await start('a'), await start('b')];
  await Promise.all(Array.from({ length: 20 }, () => readAfter(0, a)));
  await until(async () => (await redis.client.hlen(names.name)) === 2);
  expect(b.written()).toBe(1);
});

test('reports are written and get their expiry in one script, so that none stays for ever', async () => {
  const [a, b] = [await start('a'), await start('b')];
  const monitor = await redis.client.monitor();
  const writers = new Set<string>();
  const bothReported = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time, [command, name]: string[], source) => {
      if (command?.toLowerCase() !== 'hset' || name !== names.name) return;
      writers.add(source as string);
      if (a.written() > 0 && b.written() > 0) resolve();
    });
  });
  await readAfter(2000, a);
  await bothReported;
  monitor.disconnect();
  expect([...writers]).toEqual(['lua']);
  expect(await redis.client.pttl(names.name)).toBeGreaterThan(0);
});

test('what reports need may be sent again, even if it may have run', async () => {
  const repeatable: boolean[] = [];
  const guard: typeof unguarded = {
    run: (call) => {
      repeatable.push(call.isRepeatable);
      return unguarded.run(call);
    },
  };
  const [a, b] = [await start('a', guard), await start('b', guard)];
  await until(async () => (await readAfter(2000, a)).length === 1);
  expect(b.written()).toBeGreaterThan(0);
  expect(repeatable).toEqual(repeatable.map(() => true));
});

test('the report of a replica that has ended is dropped after ten seconds, and removed', async () => {
  const [a, b] = [await start('a'), await start('b')];
  await until(async () => (await readAfter(2000, a)).length === 1);
  await b.end();
  const stored = await redis.client.hget(names.name, 'b');
  const [last] = await a.reports.read([]);
  expect(await readAfter(10_000 - last!.ageMillis, a)).toEqual([stored]);
  expect(await readAfter(1, a)).toEqual([]);
  expect(await redis.client.hkeys(names.name)).toEqual(['a']);
});

test('all replicas watch the keys of a question, and share what they have counted of them', async () => {
  const [a, b] = [await start('a'), await start('b')];
  await readAfter(2000, a, ['job']);
  await until(async () => Object.keys(await a.reports.readPages('job', 7)).length === 2);

  expect(await a.reports.readPages('job', 7)).toEqual({ a: 'a of job', b: 'b of job' });
  expect([a.watched, b.watched]).toEqual([['job'], ['job']]);
  const page = naming.namesOf('job').history(7);
  expect(await redis.client.pttl(page)).toBeGreaterThan(15 * 60_000);
  expect(await a.reports.readPages('other', 7)).toEqual({});
});

test('a question that can not be read names no keys', async () => {
  const a = await start('a');
  await redis.client.publish(names.channel, 'no question');
  await until(async () => (await redis.client.hlen(names.name)) === 1);
  expect(a.watched).toEqual([]);
});

test('a replica that a Redis without its memory does not know yet is reported for ten seconds', async () => {
  const [a, b] = [await start('a'), await start('b')];
  await until(async () => (await readAfter(2000, a)).length === 1);
  await b.end();
  const stored = await redis.client.hget(names.name, 'b');
  // Its last report may be newer than the one that was seen.
  await a.reports.read([]);
  await redis.client.del(names.name);
  expect(await readAfter(2000, a)).toEqual([stored]);
  expect(await readAfter(10_001, a)).toEqual([]);
});
