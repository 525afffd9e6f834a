import { type TestReplica, useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

describe('idle keys', () => {
  // Three windows are no shorter than this lease, so nothing outlives them.
  const replica = key.replica('r1', { leaseMillis: 3000 });

  const LAST_MILLISECOND = 3999;
  const END_OF_THIRD_IDLE_WINDOW = 4000;

  test.each([
    ['release', () => replica.release('a')],
    ['settle', () => replica.settle()],
    ['withdraw', () => replica.withdraw(['a'])],
  ])(
    '%s does not keep the key, and removes it, although Redis still has it',
    async (_name, call) => {
      await replica.check(['a']);
      for (const now of [1500, 2500, LAST_MILLISECOND]) {
        await key.setTime(now);
        await call();
      }
      expect(await key.stored()).toMatchObject({
        state: { start: 3000, approved: 0, expires: END_OF_THIRD_IDLE_WINDOW },
        expiry: { state: END_OF_THIRD_IDLE_WINDOW },
      });
      await key.setTime(END_OF_THIRD_IDLE_WINDOW);
      await call();
      expect((await key.stored()).expiry).toEqual({});
    },
  );

  test('a check puts off the expiry, and at its time makes the key again', async () => {
    await replica.check(['a'], { maxRequests: 7 });
    await key.setTime(LAST_MILLISECOND);
    await replica.check(['b']);
    expect(await key.stored()).toMatchObject({
      state: { start: 3000, max: 7, approved: 1, expires: 7000 },
      expiry: { state: 7000, requests: 7000 },
    });
    await key.setTime(7500);
    await replica.check(['c']);
    expect(await key.stored()).toMatchObject({
      state: { start: 7500, max: 2, approved: 1, limitsSince: 7500, overridden: [] },
      requests: ['c'],
      expiry: { state: 11_500, requests: 11_500 },
    });
  });

  describe('waiters', () => {
    test('do not keep the key if all their replicas are dead', async () => {
      const leaseMillis = 500;
      const [brief, other] = [
        key.replica('r1', { leaseMillis }),
        key.replica('r2', { leaseMillis }),
      ];
      await brief.check(['a', 'b']);
      await brief.checkOrWait(['c']);
      await key.setTime(END_OF_THIRD_IDLE_WINDOW);
      await other.release('unknown');
      await key.setTime(8000);
      expect((await other.settle()).millisToRoom).toBeUndefined();
      expect((await key.stored()).expiry).toEqual({});
    });
  });
});

describe('remembered approvals', () => {
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
});
