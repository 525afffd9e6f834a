import { FIRST_PAGE, type PageOfHolds } from '../../../src/redis/scripts/holders-codec.js';
import type { HeldApproval } from '../../../src/limiter/holdings.js';
import { limiterRules } from '../../support/redis-user.js';
import { type TestReplica, useScriptHarness } from '../../support/script-harness.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const HOLD = 2500;
const limits = { maxRequests: 2, maxRequestsInQueue: 10 };

const key = useScriptHarness(redis);
const replica = key.replica('r1', { limits });

const NOTHING = { held: {}, waiting: {} };

/** All pages of the holds of the key, in the order in which Redis names them. */
async function heldOf({ scripts }: Pick<TestReplica, 'scripts'>): Promise<HeldApproval[]> {
  const held: HeldApproval[] = [];
  for (let next: string | undefined = FIRST_PAGE; next !== undefined;) {
    const page: PageOfHolds = await scripts.holders(key.names, next, 10);
    held.push(...page.held);
    next = page.next;
  }
  return held;
}

const wait = (requestId: string, more: object = {}): Promise<string> =>
  replica
    .checkBatch([{ requestId, canWait: true, holdMillis: HOLD, ...more }])
    .then(([verdict]) => verdict as string);

describe('a holder', () => {
  test('is stored with the beginning of its hold, and goes with the hold', async () => {
    await key.setTime(100);
    await replica.checkHold('a', HOLD, { holder: 'host:1' });
    await replica.checkHold('b', HOLD);
    expect(await key.storedHolders()).toEqual({ held: { a: '100:host:1' }, waiting: {} });
    await key.setTime(200);
    await replica.renewHold('a');
    expect(await key.storedHolders()).toEqual({ held: { a: '100:host:1' }, waiting: {} });
    expect(await heldOf(replica)).toEqual([
      { requestId: 'a', holder: 'host:1', heldMillis: 100, lapseMillis: HOLD, hits: 1 },
      {
        requestId: 'b',
        holder: undefined,
        heldMillis: undefined,
        lapseMillis: HOLD - 100,
        hits: 1,
      },
    ]);
    await replica.release('a');
    expect(await key.storedHolders()).toEqual(NOTHING);
  });

  test('expires no sooner than its hold', async () => {
    await replica.checkHold('a', 60_000, { holder: 'host:1' });
    await key.expiry();
    const expiresAt = (): Promise<number> => redis.client.pexpiretime(key.names.holders);
    const first = await expiresAt();
    expect(first).toBe(await redis.client.pexpiretime(key.names.holds));
    await replica.renewHold('a', { holdMillis: 80_000 });
    expect(await expiresAt()).toBe(first + 20_000);
  });

  test('leaves with its hold alone, while others hold', async () => {
    await replica.checkHold('a', HOLD, { holder: 'host:1' });
    await replica.checkHold('b', 2 * HOLD, { holder: 'host:2' });
    await key.setTime(HOLD);
    expect(await heldOf(replica)).toMatchObject([{ requestId: 'b' }]);
    await replica.check(['x']);
    expect(await key.storedHolders()).toEqual({ held: { b: '0:host:2' }, waiting: {} });
  });

  test('leaves a plain key when the last hold has ended', async () => {
    await replica.checkHold('a', HOLD, { holder: 'host:1' });
    await key.setTime(HOLD);
    await replica.check(['x']);
    expect(await key.storedHolders()).toEqual(NOTHING);
    expect(await redis.client.hgetall(key.names.state)).not.toHaveProperty('more');
  });

  test('is any text, also in the middle of a batch', async () => {
    const texts = ['a b,c;d=e/f%2Cg', undefined, '⚙:7@~#!*'];
    await replica.checkBatch(
      texts.map((holder, i) => ({ requestId: `h${i}`, canWait: true, holdMillis: HOLD, holder })),
    );
    expect(await key.storedHolders()).toEqual({
      held: { h0: `0:${texts[0]}` },
      waiting: { h2: texts[2] },
    });
    await replica.release('h0');
    expect(await key.storedHolders()).toEqual({ held: { h2: `0:${texts[2]}` }, waiting: {} });
  });

  test('of a key without others costs no other key a name', async () => {
    await replica.checkHold('a', HOLD);
    expect(await redis.client.hget(key.names.state, 'has_holders')).toBe('0');
    expect(await redis.client.exists(key.names.holders, key.names.holdersWaiting)).toBe(0);
  });
});

describe('a waiter with a holder', () => {
  beforeEach(async () => {
    await replica.check(['x', 'y']);
    await wait('a', { holder: 'host:1' });
  });

  test('has it in the queue, and at its turn', async () => {
    expect(await key.storedHolders()).toEqual({ held: {}, waiting: { a: 'host:1' } });
    await key.setTime(1000);
    await replica.settle();
    expect(await key.storedHolders()).toEqual({ held: { a: '1000:host:1' }, waiting: {} });
  });

  test('leaves nothing when it is withdrawn', async () => {
    await wait('b', { holder: 'host:2' });
    await replica.withdraw(['a']);
    expect(await key.storedHolders()).toEqual({ held: {}, waiting: { b: 'host:2' } });
    await replica.withdraw(['b']);
    expect(await key.storedHolders()).toEqual(NOTHING);
  });

  test('leaves nothing when its replica is dead', async () => {
    await key.setTime(50_000);
    await key.replica('r2', { limits, history: { since: -10 } }).check(['z']);
    expect(await key.storedHolders()).toEqual(NOTHING);
  });

  test('is put back with it after Redis has lost its memory', async () => {
    const [ticket] = Object.values(await redis.client.hgetall(key.names.waiting)).map((text) =>
      Number(text),
    );
    await key.lose('state', 'requests', 'queue', 'waiting', 'replicas', 'holdersWaiting');
    await replica.settle({ a: key.relativeTicket(ticket ?? 0) }, 900, '', {
      a: { holdMillis: HOLD, holder: 'host:1' },
    });
    expect(await key.storedHolders()).toEqual({ held: {}, waiting: { a: 'host:1' } });
  });

  test('keeps it when Redis has lost the state alone', async () => {
    await key.lose('state');
    await replica.check(['z']);
    for (const millis of [600, 1600]) {
      await key.setTime(millis);
      await replica.settle();
    }
    const { held, waiting } = await key.storedHolders();
    expect([Object.keys(held), waiting]).toEqual([['a'], {}]);
    expect(await heldOf(replica)).toMatchObject([{ requestId: 'a', holder: 'host:1' }]);
  });
});

test('many holds come in several pages, each of them once if nothing changes', async () => {
  const many = Array.from({ length: 600 }, (_, i) => `h${i}`);
  const large = key.replica('r3', { limits: { maxRequests: 1000 }, maxHoldsPerKey: 1000 });
  await large.checkBatch(
    many.map((requestId) => ({ requestId, canWait: false, holdMillis: HOLD, holder: requestId })),
  );
  const { next, held } = await large.scripts.holders(key.names, FIRST_PAGE, 10);
  expect(next).toBeDefined();
  expect(held.length).toBeLessThan(100);
  const all = await heldOf(large);
  expect(all.map(({ requestId }) => requestId).sort()).toEqual([...many].sort());
  expect(all.every(({ requestId, holder }) => holder === requestId)).toBe(true);
});

test('all holds come at once for a user whose rules do not allow a part of a hash', async () => {
  const user = uniqueKey();
  const rules = limiterRules().map((rule) => rule.replace('+hscan ', ''));
  await redis.client.call(
    'ACL',
    'SETUSER',
    user,
    'on',
    'nopass',
    ...rules.filter((rule) => rule !== '+hscan'),
  );
  const client = redis.client.duplicate({ username: user, password: 'any' });
  try {
    await replica.checkHold('a', HOLD, { holder: 'host:1' });
    expect(await heldOf(key.replica('r2', { limits, client }))).toMatchObject([
      { holder: 'host:1' },
    ]);
    const log = (await redis.client.call('ACL', 'LOG')) as unknown[];
    expect(log).toHaveLength(1);
  } finally {
    client.disconnect();
    await redis.client.call('ACL', 'DELUSER', user);
    await redis.client.call('ACL', 'LOG', 'RESET');
  }
});
