import type { Redis } from 'ioredis';

import { keysToExamine } from '../../../src/redis/scripts/examine-codec.js';
import { keysToInspect } from '../../../src/redis/scripts/inspect-codec.js';
import { keysToRenew } from '../../../src/redis/scripts/renew-codec.js';
import { keysOf } from '../../../src/redis/scripts/shared-arguments.js';
import { useScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

/** The keys that the controlled clock reads. */
const CLOCKS = '%R~test-clock-*';

const key = useScriptHarness(redis);
const clients: Redis[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

/** A connection of a user with access to these keys and channels, and the controlled clock. */
async function restricted(rules: readonly string[], channels: readonly string[]): Promise<Redis> {
  const username = uniqueKey();
  await redis.client.call('ACL', [
    'SETUSER',
    username,
    'on',
    '>secret',
    '+@all',
    'resetchannels',
    CLOCKS,
    ...rules,
    ...channels.map((channel) => `&${channel}`),
  ]);
  const client = redis.client.duplicate({ username, password: 'secret' });
  clients.push(client);
  return client;
}

describe('a user with access to only the eight keys and the channel', () => {
  let replica: TestReplica;
  let client: Redis;
  beforeEach(async () => {
    client = await restricted(
      [...keysOf(key.names), key.names.hits, key.names.holds].map((name) => `%RW~${name}`),
      [key.names.wakeChannel],
    );
    replica = key.replica('r1', { client });
  });

  test('has no other access', async () => {
    await expect(client.get(uniqueKey())).rejects.toThrow(/NOPERM/);
    await expect(client.get(key.names.leader)).rejects.toThrow(/NOPERM/);
    await expect(client.publish(`${key.names.wakeChannel}2`, '')).rejects.toThrow(/NOPERM/);
    await redis.client.call('ACL', 'LOG', 'RESET');
  });

  test('can run all scripts', async () => {
    // Approves, denies, queues, finds the queue full, purges.
    await replica.checkOrWait(['a', 'b', 'c', 'd', 'e', 'f']);
    await replica.check(['g'], { maxRequests: 3 });
    expect(await replica.renew(1, { wakeNumber: 1 })).toBe(true);
    // Holds the key, since no replica called for so long, and ends the hold.
    await key.setTime(5000);
    await key.replica('r2', { client }).settle();
    await key.setTime(5500);
    await key.replica('r2', { client }).checkOrWait(['h', 'i', 'j', 'k', 'l', 'm', 'n']);
    // Serves by release and by withdrawal, and withdraws.
    const [first] = (await key.stored()).requests;
    expect(await replica.release(first!)).toBe(true);
    expect(await replica.release('unknown')).toBe(false);
    await key.replica('r2', { client }).withdraw(['l', 'h']);
    await replica.inspect();
    await replica.peek();
    await replica.status('g');
    // Ends a window, serves the queue, puts a lost waiter back.
    await key.setTime(6000);
    await replica.settle();
    await replica.settle({ lost: 1 });
    // Forgets an idle key, and the rest of a key whose state was lost.
    await key.setTime(60_000);
    await replica.inspect();
    await replica.peek();
    await replica.status('g');
    await key.replica('r3', { client }).release('unknown');
    // Finds after a hold that all replicas are dead, and removes the key when it is idle again.
    await key.setTime(61_000);
    expect(await replica.settle()).toMatchObject({ waiting: 0 });
    await key.setTime(70_000);
    expect(await replica.settle()).toMatchObject({ millisToRoom: undefined });
    await replica.check(['x']);
    await redis.client.del(key.names.state);
    await replica.release('x');
    await replica.withdraw(['x']);
    expect(await replica.settle({ y: 1 })).toMatchObject({ waiting: 1 });
    await key.setTime(71_000);
    expect(await replica.settle()).toMatchObject({ granted: ['y'] });
  });
});

test('renew needs the leases, the state, and the other key that it looks for', async () => {
  await key.replica('r1').checkOrWait(['a', 'b', 'c']);
  for (const lookFor of ['queue', 'waiting'] as const) {
    const names = keysToRenew({ names: key.names, places: 1, wakeNumber: 0, lookFor });
    expect(names).toHaveLength(3);
    const client = await restricted(
      names.map((name) => `%RW~${name}`),
      [],
    );
    expect(await key.replica('r1', { client }).renew(1, { lookFor })).toBe(true);
  }
});

test.each([
  ['inspect', 'three', keysToInspect],
  ['examine', 'four', keysToExamine],
] as const)('%s needs only %s of the keys', async (look, _count, keysTo) => {
  await key.replica('r1').checkOrWait(['a', 'b', 'c']);
  // Redis also requires write access to the keys of an EVAL.
  const client = await restricted(
    keysTo(key.names).map((name) => `%RW~${name}`),
    [],
  );
  const replica = key.replica('r1', { client });
  for (const now of [0, 1000, 5000, 60_000]) {
    await key.setTime(now);
    await replica[look]();
  }
  await key.setTime(500);
  expect(await replica[look]()).toMatchObject({ used: 2, waiting: 1 });
});
