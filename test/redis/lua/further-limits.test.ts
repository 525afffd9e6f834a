import type { FurtherLimit } from '../../support/further-limits.js';
import {
  type ReplicaOptions,
  ScriptHarness,
  useScriptHarness,
  type TestReplica,
} from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const TEN: FurtherLimit = {
  name: 'ten',
  windowMillis: 10_000,
  maximum: 3,
  counts: 'requests',
  keepsReleased: false,
};
const TOKENS: FurtherLimit = { ...TEN, name: 'tokens', maximum: 50, counts: 'hits' };
const OWN = { maxRequests: 20 };

const key = useScriptHarness(redis);
const replica = withFurther([TEN, TOKENS]);

function withFurther(further: FurtherLimit[], options: ReplicaOptions = {}): TestReplica {
  return key.replica('r1', { ...options, limits: { ...OWN, ...options.limits, further } });
}

/** What each approval takes of a limit, by its id. */
function idsOf({ name }: FurtherLimit): Promise<Record<string, string>> {
  return redis.client.hgetall(key.names.limit(name));
}

async function expiryOf({ name }: FurtherLimit): Promise<number> {
  return (await redis.client.pexpiretime(key.names.limit(name))) - key.startMillis;
}

/** The field of the state, with times after the start. */
async function used(): Promise<Record<string, [start: number, taken: number]>> {
  const [field] = await redis.client.hmget(key.names.state, 'further');
  return Object.fromEntries(
    (field ?? '').split(',').map((text) => {
      const [name = '', start = '', taken = ''] = text.split(/[=:]/);
      return [name, [Number(start) - key.startMillis, Number(taken)]];
    }),
  );
}

describe('an approval', () => {
  test('is stored with what it takes of each, under names that expire after their windows', async () => {
    expect(await replica.checkHits('a', 7)).toBe('approved');
    await key.setTime(500);
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await idsOf(TEN)).toEqual({ a: '1', b: '1' });
    expect(await idsOf(TOKENS)).toEqual({ a: '7', b: '1' });
    expect(await used()).toEqual({ ten: [0, 2], tokens: [0, 8] });
    expect([await expiryOf(TEN), await expiryOf(TOKENS)]).toEqual([40_000, 40_000]);
    expect((await key.stored()).state).toMatchObject({ expires: 10_000 });
    expect((await key.expiry()).state).toBeGreaterThanOrEqual(10_000);
  });

  test('that is sent again counts once in each', async () => {
    const again = withFurther([TEN, TOKENS], { guard: sentAgain });
    expect(await replica.checkHits('a', 7)).toBe('approved');
    expect(await again.checkHits('a', 7)).toBe('approved');
    expect(await used()).toEqual({ ten: [0, 1], tokens: [0, 7] });
    expect(await again.release('a')).toBe(true);
    expect(await again.release('a')).toBe(false);
    expect(await used()).toEqual({ ten: [0, 0], tokens: [0, 0] });
  });

  test('that is given again when Redis has forgotten it counts once in a longer window', async () => {
    const limits = [{ ...TEN, maximum: 9 }, TOKENS];
    const roomy = withFurther(limits, { leaseMillis: 2000 });
    for (const [i, id] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      await key.setTime(i * 1000);
      await roomy.check([id]);
    }
    await roomy.amend('a', 7);
    expect(await used()).toEqual({ ten: [0, 5], tokens: [0, 11] });
    await key.setTime(5000);
    const again = withFurther(limits, { leaseMillis: 2000, guard: sentAgain });
    expect(await again.check(['a'])).toEqual(['approved']);
    expect(await used()).toEqual({ ten: [0, 5], tokens: [0, 5] });
  });

  test('that nobody has got counts in no limit after its release', async () => {
    const keeping = withFurther([{ ...TEN, keepsReleased: true }]);
    await keeping.check(['a', 'b']);
    expect(await keeping.release('a')).toBe(true);
    expect(await used()).toEqual({ ten: [0, 2] });
    expect(await keeping.scripts.release(key.names, 'b', { isUnused: true })).toBe(true);
    expect(await used()).toEqual({ ten: [0, 1] });
  });

  test('that is held again after its hold has lapsed counts once in a limit that keeps it', async () => {
    const keeping = withFurther([{ ...TEN, keepsReleased: true }]);
    await keeping.checkHold('a', 100);
    await key.setTime(500);
    expect(await keeping.checkHold('a', 100)).toBe('approved');
    expect(await used()).toEqual({ ten: [0, 1] });
  });

  test('in a later window begins the limit again, and its names', async () => {
    await replica.check(['a']);
    await key.setTime(9000);
    await replica.check(['b']);
    await key.setTime(10_000);
    expect(await replica.check(['c'])).toEqual(['approved']);
    expect(await idsOf(TEN)).toEqual({ c: '1' });
    expect(await used()).toEqual({ ten: [10_000, 1], tokens: [10_000, 1] });
    expect(await expiryOf(TEN)).toBe(50_000);
  });

  test('of a new key fails in a full Redis, and one of a known key does not', async () => {
    await replica.check(['a']);
    const other = await ScriptHarness.create(redis.client);
    const limits = { ...OWN, further: [TEN, TOKENS] };
    await whileFull(redis.client, async () => {
      await expect(other.replica('r1', { limits }).check(['x'])).rejects.toThrow();
      expect(await replica.checkHits('b', 5)).toBe('approved');
    });
    expect((await other.stored()).state).toBeUndefined();
    expect(await used()).toEqual({ ten: [0, 2], tokens: [0, 6] });
  });
});

describe('waiters', () => {
  test('are told by a wake of everything that is left', async () => {
    const wakes = await recordWakes(key.names.wakeChannel);
    await replica.check(['a', 'b', 'c']);
    await replica.checkOrWait(['w']);
    await key.setTime(100);
    await replica.release('a');
    expect(await wakes.read()).toMatchObject([
      {
        granted: ['w'],
        limits: '1000:20:3,ten=10000:3:requests,tokens=10000:50:hits',
        approved: '3:900000,ten=3:9900000,tokens=3:9900000',
        millisToRoom: 9900,
      },
    ]);
  });

  test('are told that there may be room sooner, though nobody is approved', async () => {
    const limits = { maxRequests: 100 };
    const two = withFurther([{ ...TEN, maximum: 2, windowMillis: 60_000 }, TOKENS], { limits });
    await two.checkHits('a', 5);
    await two.checkHits('b', 40);
    await two.checkHits('w', 20, { canWait: true });
    expect((await two.settle()).millisToRoom).toBe(60_000);
    const wakes = await recordWakes(key.names.wakeChannel);
    await two.release('a');
    expect(await wakes.read()).toMatchObject([{ granted: [], millisToRoom: 10_000 }]);
  });

  test('are told that there may be room sooner for several hits, though one hit had room before', async () => {
    const two = withFurther([{ ...TOKENS, maximum: 4 }], { limits: { maxRequests: 3 } });
    await two.check(['a', 'b']);
    await two.checkHits('w', 3, { canWait: true });
    expect((await two.settle()).millisToRoom).toBe(10_000);
    const wakes = await recordWakes(key.names.wakeChannel);
    await two.release('a');
    expect(await wakes.read()).toMatchObject([{ granted: [], millisToRoom: 1000 }]);
  });

  test('are told that other rules bring a limit whose window ends sooner', async () => {
    await replica.check(['a', 'b', 'c']);
    await replica.checkOrWait(['w']);
    const wakes = await recordWakes(key.names.wakeChannel);
    const other = withFurther([{ ...TEN, windowMillis: 60 }, TOKENS]);
    await other.checkOrWait(['v']);
    expect(await wakes.read()).toMatchObject([{ granted: [], millisToRoom: 60 }]);
  });

  test('of a key that Redis has lost are approved when the room would have come, not before', async () => {
    const patient = withFurther([TEN, TOKENS], { leaseMillis: 60_000 });
    await patient.check(['a', 'b', 'c']);
    await key.setTime(100);
    const [ticket] = await patient.checkOrWait(['w']);
    const { limits, millisToRoom } = await patient.settle();
    expect(millisToRoom).toBe(9900);
    await key.lose();
    await key.setTime(2000);
    const restored = await patient.settle({ w: Number(ticket) }, 8000, limits);
    expect(restored).toMatchObject({ granted: [], millisToRoom: 8000 });
    expect(await used()).toEqual({ ten: [0, 3], tokens: [0, 50] });
    await key.setTime(9999);
    expect(await patient.check(['x'])).toEqual(['denied']);
    await key.setTime(10_000);
    expect((await patient.settle()).granted).toEqual(['w']);
    expect(await idsOf(TEN)).toEqual({ w: '1' });
  });
});

describe('rules', () => {
  test('that remove a limit remove its name', async () => {
    await replica.check(['a']);
    const other = withFurther([TOKENS]);
    await other.check(['b']);
    expect(await idsOf(TEN)).toEqual({});
    expect(await used()).toEqual({ tokens: [0, 2] });
    const none = key.replica('r1', { limits: OWN });
    await none.check(['c']);
    expect(await idsOf(TOKENS)).toEqual({});
    expect(await redis.client.hmget(key.names.state, 'further', 'more')).toEqual([null, null]);
  });

  test('of a replica that loaded its rules earlier change nothing', async () => {
    await key.setTime(100);
    await replica.check(['a']);
    await key.setTime(200);
    const older = key.replica('r2', { limits: OWN, history: { loaded: 50 } });
    await older.check(['b']);
    await older.settle();
    expect(await used()).toEqual({ ten: [100, 2], tokens: [100, 2] });
    const newer = key.replica('r3', { limits: OWN, history: { loaded: 150 } });
    await newer.check(['c']);
    expect(await redis.client.hmget(key.names.state, 'further')).toEqual([null]);
    await older.check(['d']);
    expect(await redis.client.hmget(key.names.state, 'limits')).toEqual(['1000:20:3']);
  });

  test('that bring a limit back do not bring back ids from before the key was idle', async () => {
    await replica.check(['a']);
    // Redis removes the state when it is idle, and the names of the limits later.
    await key.lose('state');
    await key.setTime(12_000);
    await key.replica('r1', { limits: OWN }).check(['b']);
    expect(await replica.check(['c'])).toEqual(['approved']);
    expect(await idsOf(TEN)).toEqual({ c: '1' });
    expect(await replica.release('a')).toBe(false);
    expect(await used()).toEqual({ ten: [12_000, 1], tokens: [12_000, 1] });
  });

  test('with a longer window move the expiry of its name', async () => {
    await replica.check(['a']);
    await withFurther([{ ...TEN, windowMillis: 50_000 }]).check(['b']);
    expect(await expiryOf(TEN)).toBe(200_000);
  });
});

describe('a key that has been idle for too long', () => {
  // Three windows are shorter than this lease, so the state is kept for approvals that are remembered.
  beforeEach(async () => {
    await replica.check(['a']);
    await key.setTime(2500);
  });

  test('stays removed while its state is kept', async () => {
    await replica.check(['b']);
    for (const now of [10_000, 10_500]) {
      await key.setTime(now);
      await replica.release('a');
      expect((await key.stored()).state).toBeDefined();
      expect(await replica.inspect()).toBeUndefined();
    }
  });

  test('has no approvals without ids if the clock goes back', async () => {
    await replica.release('nothing');
    await key.setTime(10_000);
    await replica.release('nothing');
    await key.setTime(9000);
    expect(await replica.release('a')).toBe(false);
    expect(await idsOf(TEN)).toEqual({});
    expect(await used()).toEqual({ ten: [0, 0], tokens: [0, 0] });
  });
});

describe('names that somebody has removed alone', () => {
  test('the ids of a limit: they count until its window ends, and can be released elsewhere', async () => {
    await replica.check(['a', 'b', 'c']);
    await redis.client.del(key.names.limit('ten'));
    expect(await replica.release('a')).toBe(true);
    expect(await replica.check(['d'])).toEqual(['denied']);
    await key.setTime(10_000);
    expect(await replica.check(['e'])).toEqual(['approved']);
    expect(await idsOf(TEN)).toEqual({ e: '1' });
  });

  test('the state: approvals of before do not count, nor come back', async () => {
    await replica.check(['a', 'b', 'c']);
    await key.lose('state');
    await key.setTime(100);
    expect(await replica.check(['d'])).toEqual(['approved']);
    expect(await idsOf(TEN)).toEqual({ d: '1' });
    expect(await replica.release('a')).toBe(false);
    expect(await used()).toEqual({ ten: [100, 1], tokens: [100, 1] });
  });
});

test.each([15_000, 9000])(
  'when the clock goes back to %d, their windows begin then, as full as they are',
  async (now) => {
    await key.setTime(20_000);
    await replica.check(['a']);
    await key.setTime(now);
    await replica.check(['b']);
    expect(await used()).toEqual({ ten: [now, 2], tokens: [now, 2] });
    expect(await idsOf(TEN)).toEqual({ a: '1', b: '1' });
    await key.setTime(now + 10_000);
    await replica.check(['c']);
    expect(await used()).toEqual({ ten: [now + 10_000, 1], tokens: [now + 10_000, 1] });
  },
);
