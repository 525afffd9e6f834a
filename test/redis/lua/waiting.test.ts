import type { CheckBatchReply } from '../../../src/redis/scripts/check-codec.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import { type KeyNames, KeyNaming } from '../../../src/redis/shared/key-names.js';
import { letThemWait, useKeyWithWaiters } from '../../support/use-key-with-waiters.js';
import type { DeclaredLimits } from '../../support/limits.js';
import {
  ScriptHarness,
  TEST_KEPT_MILLIS,
  TEST_LEASE_MILLIS,
  type TestReplica,
  checkBatchOf,
  useScriptHarness,
} from '../../support/script-harness.js';
import { scriptsOfManyKeys } from '../../support/scripts-of-many-keys.js';
import { sentAgain, unguarded } from '../../support/unguarded.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { type WakeRecorder, useWakeRecorder } from '../../support/wake-recorder.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);
const key = useScriptHarness(redis);

describe('a settle', () => {
  const { key, r1, r2, wakes } = useKeyWithWaiters(redis);

  /** The reply about a key that Redis does not know. */
  const OF_UNKNOWN_KEY = {
    ...{
      millisToRoom: undefined,
      wakeNumber: 0,
      waiting: 0,
      places: 0,
      limits: '',
      used: 0,
      at: 0,
    },
    ...{ unclaimed: 0, putBack: [], granted: [], ended: [], holdsLeft: new Map() },
  };

  test('an unknown key is reported as unknown and not made', async () => {
    await key.lose();
    expect(await r1.settle()).toEqual(OF_UNKNOWN_KEY);
    expect((await key.stored()).expiry).toEqual({});
  });

  test('within the window the caller learns the state of the queue, and renews its lease alone', async () => {
    await key.setTime(999);
    const ofQueue = { waiting: 3, places: 2, limits: '1000:2:3', used: 2 };
    expect(await r1.settle()).toEqual({ ...OF_UNKNOWN_KEY, ...ofQueue, millisToRoom: 1, at: 999 });
    expect(await wakes.take()).toEqual([]);
    const expiresAt = 999 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toMatchObject({
      replicas: { r1: 999 + TEST_LEASE_MILLIS, r2: TEST_LEASE_MILLIS },
      expiry: { state: expiresAt, requests: expiresAt, queue: expiresAt, replicas: expiresAt },
    });
  });

  describe('at the end of the window', () => {
    beforeEach(async () => {
      await key.setTime(1000);
    });

    test('the first call serves the queue, keeps its names and publishes one wake', async () => {
      expect(await r1.settle()).toMatchObject({
        millisToRoom: 1000,
        wakeNumber: 1,
        waiting: 1,
        places: 1,
        used: 2,
        at: 1000,
        granted: ['c', 'd'],
      });
      const keptUntil = 1000 + TEST_KEPT_MILLIS;
      const stored = await key.stored();
      expect(stored).toMatchObject({
        state: { start: 1000, denied: 0, expires: 5000 },
        expiry: { state: keptUntil, requests: keptUntil, queue: keptUntil, replicas: keptUntil },
      });
      expect(stored.replicas).toEqual({ r1: 6000 });
      await r2.settle();
      expect(await wakes.take()).toEqual([
        `{"at":${key.startMillis + 1000},"number":1,"millisToRoom":1000,"waiting":1,` +
          '"limits":"1000:2:3","approved":2,"granted":["c","d"]}',
      ]);
    });

    test('a later caller learns of its own approvals only if it asks', async () => {
      await r1.settle();
      expect((await r2.settle()).granted).toEqual([]);
      expect((await r2.settle({ d: 2 })).granted).toEqual(['d']);
    });
  });
});

describe('a release', () => {
  const replica = key.replica('r1');
  let wakes: WakeRecorder;
  beforeEach(async () => {
    wakes = await recordWakes(key.names.wakeChannel);
  });

  test('a release of the last approval removes the name of the ids, which the next makes again', async () => {
    await replica.check(['a']);
    expect(await replica.release('a')).toBe(true);
    expect((await key.stored()).expiry).toEqual({ state: 11_000 });
    await replica.check(['b']);
    expect(await key.stored()).toMatchObject({
      requests: ['b'],
      expiry: { state: 11_000, requests: 11_000 },
    });
  });

  test('a release in a later window leaves the key as it is after a check, once the next has come', async () => {
    const fields = async (): Promise<string[]> =>
      Object.keys(await redis.client.hgetall(key.names.state)).sort();
    await replica.check(['a']);
    const after = await fields();
    await key.setTime(1000);
    expect(await replica.release('a')).toBe(false);
    expect(await fields()).toContain('extra');
    await replica.check(['b']);
    expect(await fields()).toEqual(after);
  });

  test.each([
    ['was released before', 'a'],
    ['is unknown', 'unknown'],
    ['waits', 'd'],
    ['is empty', ''],
  ])('a release of an id that %s changes nothing, and wakes nobody', async (_which, requestId) => {
    await replica.check(['a', 'b', 'c']);
    await replica.release('a');
    await replica.checkOrWait(['c', 'd']);
    const before = await key.stored();
    expect(await replica.release(requestId)).toBe(false);
    expect(await key.stored()).toEqual(before);
    expect(await wakes.take()).toEqual([]);
  });

  test('a release in an unknown key makes none', async () => {
    expect(await replica.release('a')).toBe(false);
    expect((await key.stored()).expiry).toEqual({});
  });

  describe('a release while others wait', () => {
    beforeEach(async () => {
      await replica.check(['a', 'b']);
      await key.replica('r2').checkOrWait(['c']);
      await replica.checkOrWait(['d']);
      await key.setTime(10);
    });

    const wake = (fields: string): string => `{"at":${key.startMillis + 10},${fields}}`;

    test('publishes one wake, and keeps all names for the next waiter', async () => {
      await replica.release('a');
      const keptUntil = 10 + TEST_KEPT_MILLIS;
      expect(await key.stored()).toMatchObject({
        requests: ['b', 'c'],
        queue: [['d@r1', 2]],
        expiry: { state: keptUntil, requests: keptUntil, queue: keptUntil, replicas: keptUntil },
      });
      expect(await wakes.take()).toEqual([
        wake(
          `"number":1,"millisToRoom":990,"waiting":1,` +
            '"limits":"1000:2:3","approved":2,"granted":["c"]',
        ),
      ]);
    });

    test('says that nobody waits after the last waiter, and drops the leases', async () => {
      await replica.release('a');
      await replica.release('c');
      expect(await key.stored()).toMatchObject({
        queue: [],
        replicas: {},
        // After an outage replicas may ask about approvals from the queue.
        expiry: { state: 30_010, requests: 30_010 },
      });
      expect((await wakes.take()).at(-1)).toBe(
        wake(
          `"number":2,"millisToRoom":990,"waiting":0,` +
            '"limits":"1000:2:3","approved":2,"granted":["d"]',
        ),
      );
    });

    test('wakes nobody if it makes no room', async () => {
      await replica.check(['x'], { maxRequests: 1 });
      await replica.release('a');
      expect(await wakes.take()).toEqual([]);
      await replica.release('b');
      expect(await wakes.read()).toMatchObject([{ granted: ['c'] }]);
    });
  });

  test('many releases leave no more ids than three sets may hold', async () => {
    const bounded = key.replica('r1', { maxIdsPerKey: 5 });
    for (let i = 0; i < 50; i += 1) {
      await bounded.check([`id${i}`]);
      expect(await bounded.release(`id${i}`)).toBe(true);
    }
    const { pastRequests } = await key.stored();
    expect(pastRequests.length).toBeLessThanOrEqual(15);
    expect(pastRequests).toContain('id49');
  });

  test('a release may not be sent again once it may have run, since it would not find its approval, but others may', async () => {
    const repeatable: boolean[] = [];
    const guard: typeof unguarded = {
      ...unguarded,
      run: (call) => {
        repeatable.push(call.isRepeatable);
        return unguarded.run(call);
      },
    };
    const watched = key.replica('r1', { guard });
    await watched.check(['a']);
    expect(await watched.release('a')).toBe(true);
    await watched.withdraw(['b']);
    expect(repeatable).toEqual([true, false, true]);
  });
});

describe('a withdrawal', () => {
  const { key, r1, r2, wakes } = useKeyWithWaiters(redis);
  beforeEach(() => key.setTime(10));

  const leased = async (): Promise<string[]> => Object.keys((await key.stored()).replicas).sort();

  describe('a waiter', () => {
    test('is withdrawn, and nobody is woken', async () => {
      await r1.withdraw(['c']);
      expect(await key.stored()).toMatchObject({
        state: { approved: 2, denied: 0 },
        queue: [
          ['d@r2', 2],
          ['e@r1', 3],
        ],
        replicas: { r1: 5000, r2: 5000 },
      });
      expect(await wakes.take()).toEqual([]);
    });

    test('that is the last of its replica ends its lease, and the last of all removes the queue', async () => {
      await r1.withdraw(['c', 'e']);
      expect(await leased()).toEqual(['r2']);
      await r2.withdraw(['d']);
      expect((await key.stored()).expiry).toEqual({ state: 11_000, requests: 11_000 });
    });

    test('leaves the lease of a replica that has joined again with a check that overtook the call', async () => {
      await r2.checkOrWait(['f'], { maxRequestsInQueue: 9 });
      await r2.withdraw(['d']);
      expect(await leased()).toEqual(['r1', 'r2']);
      await r2.withdraw(['f']);
      expect(await leased()).toEqual(['r1']);
    });
  });

  describe('an approval that crossed', () => {
    test('is released, and the next waiter is served with it', async () => {
      await r1.release('a');
      await wakes.take();
      await r1.withdraw(['c']);
      expect(await key.stored()).toMatchObject({
        state: { approved: 2 },
        requests: ['b', 'd'],
        queue: [['e@r1', 3]],
      });
      expect(await wakes.take()).toEqual([
        `{"at":${key.startMillis + 10},"number":2,"millisToRoom":990,"waiting":1,` +
          '"limits":"1000:2:3","approved":2,"granted":["d"]}',
      ]);
    });

    test('is released once', async () => {
      await r1.withdraw(['a']);
      const before = await key.stored();
      await r1.withdraw(['a']);
      expect(await key.stored()).toEqual(before);
    });
  });

  test('waiters and approvals in one call serve only the remaining waiters, with one wake', async () => {
    await r1.withdraw(['a', 'c', 'b', 'unknown']);
    const { state, requests, replicas } = await key.stored();
    expect([state?.approved, requests, replicas]).toEqual([2, ['d', 'e'], {}]);
    expect(await wakes.read()).toMatchObject([{ granted: ['d', 'e'] }]);
  });

  test('an unknown key is not made', async () => {
    const unknown = await ScriptHarness.create(redis.client);
    await unknown.replica('r1').withdraw(['a']);
    expect((await unknown.stored()).expiry).toEqual({});
  });

  test('1000 ids go in one call', async () => {
    const many = await ScriptHarness.create(redis.client);
    const replica = many.replica('r1', { limits: { maxRequestsInQueue: 2000 } });
    const ids = Array.from({ length: 1000 }, (_, i) => `w${i}`);
    await replica.check(['a', 'b']);
    await replica.checkOrWait([...ids, 'last']);
    await replica.withdraw(ids);
    expect((await many.stored()).queue).toEqual([['last@r1', 1001]]);
  });

  describe('several keys in one call', () => {
    const SMALL = { windowMillis: 3_600_000, maxRequests: 1, maxRequestsInQueue: 1 };
    let limits: Map<string, DeclaredLimits>;
    let names: KeyNames[];
    let scripts: Scripts;
    beforeEach(async () => {
      limits = new Map();
      names = ['a', 'b', 'c'].map((end) => new KeyNaming('sluice:').namesOf(uniqueKey() + end));
      scripts = scriptsOfManyKeys(redis.client, (name) => limits.get(name) ?? SMALL, {
        // The rules of this replica are newer than all others.
        history: '9999999999999:0:0',
      });
      const checks = [{ requestId: 'id', canWait: true }];
      await scripts.check(names.map((of) => checkBatchOf(of, checks)));
      await scripts.check([checkBatchOf(names[1]!, [{ requestId: 'waiter', canWait: true }])]);
    });

    test('are withdrawn separately, and say how many waiters and approvals they had', async () => {
      const replies = await scripts.withdraw([
        { names: names[0]!, claims: ['id', 'unknown'] },
        { names: names[1]!, claims: ['waiter', 'id', 'id'] },
        { names: names[2]!, claims: ['unknown'] },
      ]);
      expect(replies).toEqual([1, 2, 0]);
    });

    test('do not affect each other if one fails', async () => {
      await redis.client.del(names[1]!.state);
      await redis.client.set(names[1]!.state, 'not ours');
      const replies = await scripts.withdraw(names.map((of) => ({ names: of, claims: ['id'] })));
      expect(replies).toEqual([1, expect.any(Error) as Error, 1]);
      expect((replies[1] as Error).message).toMatch(/WRONGTYPE/);
      await redis.client.del(names[1]!.state);
    });

    test('each have their own limits', async () => {
      limits.set(names[2]!.key, { ...SMALL, windowMillis: 60_000 });
      // So another window begins.
      const earlier = Date.now() - 3_600_000;
      for (const { state } of names) await redis.client.hset(state, 'start', earlier);
      await scripts.withdraw(names.map((of) => ({ names: of, claims: ['unknown'] })));
      const stored = await Promise.all(
        names.map(({ state }) => redis.client.hget(state, 'limits')),
      );
      expect(stored).toEqual(['2 3600000:1:1', '2 3600000:1:1', '2 60000:1:1']);
    });
  });
});

describe('renewals of leases', () => {
  /** The part of a lease after which all replicas may have been cut off: lua/lib/recovery.lua. */
  const SILENT_MILLIS = 0.6 * TEST_LEASE_MILLIS;

  const options = { limits: { windowMillis: 600_000 } };
  const [r1, r2] = [key.replica('r1', options), key.replica('r2', options)];
  beforeEach(() => letThemWait(r1, r2));

  describe('a renewal', () => {
    test("changes the caller's lease, and nothing else", async () => {
      const before = await key.stored();
      await key.setTime(1000);
      expect(await r1.renew(2)).toBe(true);
      expect(await key.stored()).toEqual({
        ...before,
        replicas: { r1: 1000 + TEST_LEASE_MILLIS, r2: TEST_LEASE_MILLIS },
      });
    });

    test('is made while Redis has no memory left', async () => {
      expect(await whileFull(redis.client, () => r1.renew(2))).toBe(true);
    });
  });

  describe('a renewal leaves to a settle a key', () => {
    const expectLeft = async (renewed: Promise<boolean>): Promise<void> => {
      const before = await key.stored();
      expect(await renewed).toBe(false);
      expect(await key.stored()).toEqual(before);
    };

    test('that Redis does not know', async () => {
      const unknown = await ScriptHarness.create(redis.client);
      expect(await unknown.replica('r1').renew(1)).toBe(false);
      expect((await unknown.stored()).expiry).toEqual({});
    });

    test('that has lost only its replicas', async () => {
      await key.lose('replicas');
      expect(await r1.renew(2)).toBe(false);
      expect(await redis.client.exists(key.names.replicas)).toBe(0);
    });

    test('for which nobody has waited since its state was made again', async () => {
      await redis.client.hdel(key.names.state, 'queue');
      await expectLeft(r1.renew(2));
    });

    test('in which the caller has no place', async () => {
      await expectLeft(key.replica('r3', options).renew(1));
    });

    test('in which a place of the caller has left the queue', async () => {
      await r2.release('a');
      await expectLeft(r1.renew(2));
    });

    test('if its lease should have been renewed before', async () => {
      await key.setTime(SILENT_MILLIS);
      expect(await r1.renew(2)).toBe(true);
      await key.setTime(SILENT_MILLIS + 1);
      await expectLeft(r2.renew(1));
    });

    test('if its lease is longer than it was given, since the clock went back', async () => {
      await key.setTime(500);
      await r1.renew(2);
      await key.setTime(400);
      await expectLeft(r1.renew(2));
    });

    test.each([
      ['a wake that the caller has missed', 0],
      ['fewer wakes than the caller knows of', 2],
      ['wakes of which the caller knows none', undefined],
    ])('with %s', async (_what, wakeNumber) => {
      await r1.release('a');
      const leased = { names: key.names, places: 1 };
      const states = await r1.scripts.renew([{ ...leased, wakeNumber }]);
      expect(states).toHaveLength(1);
      expect(await r1.scripts.renew([{ ...leased, wakeNumber: 1 }])).toEqual([]);
    });

    test('of a wrong type, without effect on other keys', async () => {
      const { names } = await ScriptHarness.create(redis.client);
      const { state, queue, records, replicas } = names;
      for (const name of [state, queue, records, replicas]) {
        await redis.client.set(name, 'not ours', 'PX', 60_000);
      }
      const leased = [names, key.names].map((each) => ({
        names: each,
        places: 2,
        wakeNumber: 0,
      }));
      await key.setTime(100);
      expect(await r1.scripts.renew(leased)).toEqual([leased[0]]);
      expect((await key.stored()).replicas).toMatchObject({ r1: 100 + TEST_LEASE_MILLIS });
    });
  });
});

describe('the numbers of wakes', () => {
  const { key, r1, wakes } = useKeyWithWaiters(redis);

  const storedNumber = async () => (await key.optionalFields()).wake ?? 0;

  /** The numbers of the wakes since the last call. */
  async function published(): Promise<unknown[]> {
    return (await wakes.read()).map(({ number }) => number);
  }

  /** What Redis replies to a check that can wait. */
  const checkOrWait = (replica: TestReplica, requestId: string): Promise<CheckBatchReply> =>
    replica.checkReply([{ requestId, canWait: true }]);

  test('each wake has the next number, and so have the state and the reply to the call that publishes it', async () => {
    expect([await storedNumber(), (await r1.settle()).wakeNumber]).toEqual([0, 0]);
    await r1.release('a');
    expect([await storedNumber(), (await r1.settle()).wakeNumber]).toEqual([1, 1]);
    await key.setTime(1000);
    expect((await r1.settle()).wakeNumber).toBe(2);
    expect([await storedNumber(), await published()]).toEqual([2, [1, 2]]);
  });

  test('a message that is no wake has no number', async () => {
    await key.lose('queue');
    await r1.settle();
    expect([await published(), await storedNumber()]).toEqual([[undefined], 0]);
  });

  describe('the reply to checks', () => {
    test('has the number and the time if one of them has a place in the queue', async () => {
      await r1.release('a');
      await key.setTime(10);
      expect(await checkOrWait(r1, 'f')).toMatchObject({
        quota: { limits: [{ maximum: 2 }] },
        queueState: { limits: '1000:2:3', wakeNumber: 1, at: key.startMillis + 10 },
      });
    });

    test('counts the wake that their own call publishes', async () => {
      await key.setTime(1000);
      expect((await checkOrWait(r1, 'f')).queueState).toMatchObject({ wakeNumber: 1 });
      expect(await published()).toEqual([1]);
    });

    test('has them again if the checks are sent again', async () => {
      const again = await checkOrWait(key.replica('r1', { guard: sentAgain }), 'e');
      expect(again.verdicts).toEqual([key.absoluteTicket(3)]);
      expect(again.queueState).toMatchObject({ wakeNumber: 0 });
    });

    test.each([
      ['cannot wait', false],
      ['finds the queue full', true],
    ])('does without if the check %s', async (_what, canWait) => {
      const reply = await r1.checkReply([{ requestId: 'f', canWait }]);
      expect(reply.queueState).toBeUndefined();
    });

    test('has only the limits if they have no place in the queue of a key with further limits', async () => {
      const further = [
        { name: 'hourly', windowMillis: 9000, maximum: 9, counts: 'hits', keepsReleased: false },
      ] as const;
      const replica = key.replica('r1', { limits: { further } });
      expect(await replica.checkReply([{ requestId: 'f', canWait: false }])).toMatchObject({
        quota: { limits: [{ maximum: 2 }, { name: 'hourly', remaining: 9 }] },
        queueState: undefined,
      });
    });
  });

  test('a key that is removed and made again begins with 0', async () => {
    await r1.release('a');
    await key.lose('state', 'queue', 'records', 'replicas');
    expect(await r1.settle({ e: 3 })).toMatchObject({ wakeNumber: 0, putBack: ['e'] });
  });
});
