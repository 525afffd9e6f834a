import { useScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

/** Approves a, and lets b wait. The replica does not learn that b's turn has come. */
async function waitForB(replica: TestReplica): Promise<void> {
  await replica.check(['a']);
  await replica.checkOrWait(['b']);
}

/** Lets `count` windows begin after the current one, each with an approval. */
async function passWindows(
  replica: TestReplica,
  count: number,
  windowMillis: number,
): Promise<void> {
  for (let window = 1; window <= count; window += 1) {
    await key.setTime((1 + window) * windowMillis);
    expect(await replica.check([`in window ${window}`])).toEqual(['approved']);
  }
}

describe.each([
  ['three windows are longer than a lease', 1000, 3000, 3],
  ['three windows are shorter than a lease', 20, 3000, 300],
  ['a window is a millisecond', 1, 500, 1000],
])('if %s,', (_case, windowMillis, leaseMillis, windows) => {
  const limits = { windowMillis, maxRequests: 1 };
  const replica = key.replica('r1', { limits, leaseMillis });
  const other = key.replica('r2', { limits, leaseMillis });
  beforeEach(async () => {
    await waitForB(replica);
    await key.setTime(windowMillis);
    // The other replica ends the window, and learns of the grant.
    expect((await other.settle()).granted).toEqual(['b']);
  });

  test('an approval from the queue is answered for three windows, and for two leases', async () => {
    await passWindows(other, windows, windowMillis);
    const before = await key.stored();
    expect((await replica.settle({ b: 1 })).granted).toEqual(['b']);
    expect(await key.stored()).toEqual(before);
  });

  test('an approval from the queue is answered after the key was removed', async () => {
    await key.setTime(5 * windowMillis);
    await other.release('unknown');
    expect(await other.inspect()).toBeUndefined();
    const isRemembered = leaseMillis > 3 * windowMillis;
    const { granted } = await replica.settle({ b: 1 }, 0);
    expect(granted).toEqual(['b']);
    // A waiter that is forgotten is put back, and approved again by a key that is made again.
    expect((await other.inspect())?.used).toBe(isRemembered ? undefined : 1);
  });

  test('a check that is sent again is approved once', async () => {
    await passWindows(other, 1, windowMillis);
    const before = await key.stored();
    const again = key.replica('r1', { limits, leaseMillis, guard: sentAgain });
    expect(await again.checkOrWait(['a', 'b'])).toEqual(['approved', 'approved']);
    expect((await key.stored()).state).toMatchObject({ approved: before.state!.approved });
    expect((await key.stored()).requests).toEqual(before.requests);
  });

  test('no call can release an approval of an earlier window', async () => {
    await passWindows(other, 1, windowMillis);
    const before = await key.stored();
    expect(await replica.release('b')).toBe(false);
    await replica.withdraw(['b']);
    expect(await key.stored()).toEqual(before);
  });

  test('an approval and the memory of it are dropped in the end', async () => {
    // The sets expire by a clock that this test does not control. They are used again before that.
    for (let turn = 1; turn <= 4; turn += 1) {
      await key.setTime(windowMillis + turn * Math.max(windowMillis, leaseMillis));
      await other.check([`later ${turn}`]);
    }
    const { requests, pastRequests } = await key.stored();
    expect([...requests, ...pastRequests]).not.toContain('b');
  });
});

test('the sets of a window and of an earlier one each expire three windows after their end', async () => {
  const replica = key.replica('r1', { leaseMillis: 3000 });
  await replica.check(['a']);
  expect(await key.expiry()).toMatchObject({ requests: 4000 });
  await key.setTime(1000);
  await replica.check(['b']);
  expect(await key.expiry()).toMatchObject({ requests: 5000 });
  expect(await key.pastExpiry()).toEqual({ 2: 4000 });
  await key.setTime(2000);
  await replica.check(['c']);
  expect(await key.stored()).toMatchObject({ requests: ['c'], pastRequests: ['a', 'b'] });
  expect(await key.pastExpiry()).toEqual({ 2: 4000, 3: 5000 });
});

test('the turn of a window whose set somebody has removed ends what was remembered in it', async () => {
  const replica = key.replica('r1', { leaseMillis: 3000 });
  for (const [window, id] of ['a', 'b', 'c', 'd'].entries()) {
    await key.setTime(window * 1000);
    await replica.check([id]);
  }
  expect(await key.stored()).toMatchObject({ requests: ['d'], pastRequests: ['a', 'b', 'c'] });
  await key.lose('requests');
  await key.setTime(4000);
  await replica.check(['e']);
  expect(await key.stored()).toMatchObject({ requests: ['e'], pastRequests: ['b', 'c'] });
});

test('a set that windows share expires two leases after the last window', async () => {
  const leaseMillis = 3000;
  const replica = key.replica('r1', { limits: { windowMillis: 100 }, leaseMillis });
  // A turn begins with each lease since 1970, and these windows are to be in one turn.
  const turnBegins = leaseMillis - (key.startMillis % leaseMillis);
  await key.setTime(turnBegins);
  await replica.check(['a']);
  await key.setTime(turnBegins + 100);
  await replica.check(['b']);
  expect(await key.stored()).toMatchObject({ requests: ['b'], pastRequests: ['a', 'b'] });
  const expireAt = turnBegins + 6200;
  expect(await key.expiry()).toMatchObject({ state: expireAt, requests: expireAt });
  expect(await key.pastExpiry()).toEqual({ 1: expireAt });
});

test('an instance that is put back within a window ends no turn twice', async () => {
  const [windowMillis, leaseMillis] = [60, 600];
  const limits = { windowMillis, maxRequests: 1 };
  const replica = key.replica('r1', { limits, leaseMillis });
  const other = key.replica('r2', { limits, leaseMillis });
  // Turns end with leases, which are counted from 1970 on.
  const turnEnd = 2 * leaseMillis - (key.startMillis % leaseMillis);
  await key.setTime(turnEnd - 70);
  await waitForB(replica);
  await key.setTime(turnEnd - 10);
  expect((await other.settle()).granted).toEqual(['b']);
  await key.setTime(turnEnd + 50);
  await other.check(['in the second turn']);

  // The key has been idle for too long. The replica assumes that b still waits, and knows its own window.
  const nextTurnEnd = turnEnd + leaseMillis;
  await key.setTime(nextTurnEnd + 10);
  const known = { lowestTicket: (turnEnd - 70) * 1000 + 1, millisToWindowEnd: 20 };
  await replica.checkBatch([{ requestId: 'c', canWait: true }], undefined, known);
  await key.setTime(nextTurnEnd + 30);
  await other.settle();
  expect((await replica.settle({ b: known.lowestTicket })).granted).toEqual(['b']);
});

test('an approval is remembered when the next windows are shorter than a third of a lease', async () => {
  const leaseMillis = 3000;
  const long = { limits: { windowMillis: 2000, maxRequests: 1 }, leaseMillis };
  const short = { limits: { windowMillis: 300, maxRequests: 1 }, leaseMillis };
  const replica = key.replica('r1', long);
  await waitForB(replica);
  await key.setTime(1000);
  await key.replica('r2', long).release('a');
  await key.setTime(2000);
  await key.replica('r2', short).check(['c']);
  await key.setTime(2400);
  expect(await key.replica('r1', short).settle({ b: 1 })).toMatchObject({
    waiting: 0,
    granted: ['b'],
  });
});

describe.each([
  ['longer', 300, 600],
  ['shorter', 600, 300],
])('if windows become %s than a third of a lease,', (_how, before, after) => {
  const leaseMillis = 1500;
  // Three long windows are shorter than two leases.
  const rememberedMillis = 3 * 600;
  const limitsOf = (windowMillis: number) => ({ windowMillis, maxRequests: 1 });

  test.each([0, 1, 2, 3, 4])(
    'an approval is remembered for three of the long ones, %d short ones into the lease',
    async (position) => {
      const changesAt = 2 * leaseMillis - (key.startMillis % leaseMillis) + position * 300;
      const windowEnds = new Map<string, number>();
      const passWindows = async (start: number, windowMillis: number): Promise<void> => {
        const replica = key.replica('r1', { limits: limitsOf(windowMillis), leaseMillis });
        for (let at = start; at < start + 5 * 600; at += windowMillis) {
          await key.setTime(at);
          await replica.check([`at ${at}`]);
          windowEnds.set(`at ${at}`, at + windowMillis);
          const { requests, pastRequests } = await key.stored();
          const promised = [...windowEnds].filter(([, end]) => at < end + rememberedMillis);
          expect([...requests, ...pastRequests]).toEqual(
            expect.arrayContaining(promised.map(([id]) => id)),
          );
        }
      };
      await passWindows(changesAt - 5 * 600, before);
      await passWindows(changesAt, after);
    },
  );
});

test('windows whose lengths change by turns do not keep a generation of ids for ever', async () => {
  const leaseMillis = 1500;
  let at = leaseMillis - (key.startMillis % leaseMillis);
  for (let lease = 0; lease < 6; lease += 1) {
    for (const windowMillis of [300, 600, 300, 300]) {
      await key.setTime(at);
      const replica = key.replica('r1', { limits: { windowMillis }, leaseMillis });
      await replica.check([`at ${at}`]);
      at += windowMillis;
    }
  }
  const { requests, pastRequests } = await key.stored();
  expect(requests.length + pastRequests.length).toBeLessThan(16);
});

describe('a settle that asks late about a released or withdrawn request puts no waiter back', () => {
  const replica = key.replica('r1', { limits: { maxRequests: 1 }, leaseMillis: 3000 });
  beforeEach(() => waitForB(replica));

  test('if it was approved and released', async () => {
    await replica.release('a');
    await replica.release('b');
    expect(await replica.settle({ b: 1 })).toMatchObject({ waiting: 0, granted: ['b'] });
    expect((await key.stored()).state).toMatchObject({ approved: 0 });
  });

  test('if it was withdrawn while it waited', async () => {
    await replica.withdraw(['b']);
    expect(await replica.settle({ b: 1 })).toMatchObject({ waiting: 0 });
    await key.setTime(1000);
    expect(await replica.check(['c'])).toEqual(['approved']);
  });
});

test("an instance that follows an idle one keeps of the old one's queue when somebody was served, for six leases", async () => {
  const [served, leaseMillis] = [20, 500];
  const limits = { windowMillis: 20, maxRequests: 1 };
  const replica = key.replica('r1', { limits, leaseMillis });
  await waitForB(replica);
  await key.setTime(served);
  await replica.settle();
  expect((await key.stored()).state).toMatchObject({ served });
  const kept = served + 6 * leaseMillis;
  await key.setTime(kept - 1);
  await replica.check(['c']);
  expect((await key.stored()).state).toMatchObject({ start: kept - 1, served, isUnsorted: false });
  await key.setTime(kept + 500);
  await replica.check(['d']);
  expect((await key.stored()).state).toMatchObject({ start: kept + 500, served: 'never' });
});

test('a key outlives an approval from the queue by six leases, whatever follows it', async () => {
  const [served, leaseMillis] = [5, 3000];
  const limits = { windowMillis: 5, maxRequests: 1 };
  const replica = key.replica('r1', { limits, leaseMillis });
  await waitForB(replica);
  await key.setTime(served);
  await replica.settle();
  // The key is idle. A hold keeps it made again, and its next window is too long to share a set.
  await key.setTime(96);
  const held = { requestId: 'c', canWait: false, holdMillis: 900 };
  await replica.checkBatch([held], { windowMillis: 1000 });
  await key.setTime(145);
  await replica.release('unknown');
  expect((await key.stored()).expiry.state).toBe(served + 6 * leaseMillis);
});

test('an approval is remembered for two leases if a longer window follows, and a release leaves the key idle', async () => {
  const limits = { windowMillis: 20, maxRequests: 3 };
  const replica = key.replica('r1', { limits, leaseMillis: 3000 });
  await replica.checkBatch([{ requestId: 'a', canWait: false, holdMillis: 509 }]);
  await replica.checkBatch([{ requestId: 'b', canWait: false }], { windowMillis: 4000 });
  await key.setTime(499);
  await replica.release('a');
  const kept = 499 + 2 * 3000;
  expect(await key.expiry()).toEqual({ state: kept });
  // A lease may have ended, and with it the turn of the set.
  expect(Object.values(await key.pastExpiry()).at(-1)).toBe(kept);
});

test('a state that is kept for remembered approvals counts none of them', async () => {
  const replica = key.replica('r1', { limits: { windowMillis: 250 }, leaseMillis: 2000 });
  await replica.check(['a']);
  await key.setTime(1000);
  await replica.release('a');
  const { state, requests } = await key.stored();
  expect(state).toMatchObject({ approved: 0 });
  expect(requests).toEqual([]);
});

test('an approval to a replica with an expired lease keeps its key as long as any other', async () => {
  const replica = key.replica('r1', {
    limits: { windowMillis: 1000, maxRequests: 1 },
    leaseMillis: 1500,
  });
  await waitForB(replica);
  // No replica has called for so long that the first call begins a recovery hold.
  await key.setTime(3400);
  expect((await replica.settle({ b: 1 })).granted).toEqual([]);
  await key.setTime(3900);
  expect((await replica.settle({ b: 1 })).granted).toEqual(['b']);
  await key.setTime(4100);
  await replica.release('unknown');
  expect(await replica.settle({ b: 1 })).toMatchObject({ granted: ['b'], waiting: 0, used: 0 });
});
