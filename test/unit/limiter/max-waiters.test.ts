import { randomUUID } from 'node:crypto';

import { CallerPresence } from '../../../src/limiter/caller-presence.js';
import type { Decision, Limiter } from '../../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../../src/limiter/memory/memory-limiter.js';
import { OutageLimiter } from '../../../src/limiter/outage/outage-limiter.js';
import { OutageLog } from '../../../src/limiter/outage/outage-log.js';
import { decideLocally } from '../../../src/limiter/outage/substitute.js';
import { ManualClock } from '../../support/manual-clock.js';
import { recordLog } from '../../support/recorded-log.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { policiesWith } from '../../support/policies.js';

const LIMITS = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };
const MAX_WAITERS = 2;

let clock: ManualClock;
let opened: Limiter[];
beforeEach(() => {
  clock = new ManualClock(0);
  opened = [];
});
afterEach(() => Promise.all(opened.map((limiter) => limiter.close())));

/** A check that can wait. A test that awaits its decision gets the error. */
function wait(limiter: Limiter, key: string, caller?: CallerPresence): Promise<Decision> {
  const decision = limiter.check({ key, canWait: true }, caller);
  decision.catch(() => undefined);
  return decision;
}

async function expectTooMany(limiter: Limiter, key: string): Promise<void> {
  await expect(wait(limiter, key)).rejects.toMatchObject({ reason: 'too_many_waiters' });
}

describe('the embedded limiter', () => {
  let limiter: MemoryLimiter;
  beforeEach(() => {
    limiter = new MemoryLimiter(
      policiesWith(() => LIMITS),
      clock,
      { maxWaiters: MAX_WAITERS },
    );
    opened.push(limiter);
  });

  test('holds as many waiters as allowed over all keys', async () => {
    for (const key of ['a', 'b']) {
      await limiter.check({ key, canWait: false });
      void wait(limiter, key);
    }
    await expectTooMany(limiter, 'a');
    expect(await limiter.inspect('a')).toMatchObject({
      limits: [{ used: 1 }],
      denied: 0,
      waiting: 1,
    });
  });

  test('has a place for a check that takes one over, and for no other', async () => {
    await limiter.check({ key: 'a', canWait: false });
    const requestId = randomUUID();
    const ask = (key: string): Promise<Decision> =>
      limiter.check({ key, canWait: true, requestId });
    const earlier = ask('a');
    void wait(limiter, 'a');
    const later = ask('a');
    await expect(earlier).rejects.toMatchObject({ conflict: 'taken_over' });
    await limiter.check({ key: 'b', canWait: false });
    await expect(ask('b')).rejects.toMatchObject({ reason: 'too_many_waiters' });
    await clock.advance(1000);
    expect(await later).toMatchObject({ outcome: 'approved', requestId });
  });

  test('approves a check that need not wait at once, however many wait', async () => {
    await limiter.check({ key: 'a', canWait: false });
    for (let i = 0; i < MAX_WAITERS; i += 1) void wait(limiter, 'a');
    expect(await wait(limiter, 'c')).toMatchObject({ outcome: 'approved' });
  });

  test('holds another waiter after one has disconnected', async () => {
    await limiter.check({ key: 'a', canWait: false });
    const caller = new CallerPresence();
    void wait(limiter, 'a', caller);
    void wait(limiter, 'a');
    caller.disconnect();
    void wait(limiter, 'a');
    expect(limiter.waiting).toBe(MAX_WAITERS);
    await expectTooMany(limiter, 'a');
  });
});

describe('a limiter with a substitute', () => {
  let store: StoreLimiterStub;
  let limiter: OutageLimiter;
  beforeEach(() => {
    store = new StoreLimiterStub();
    limiter = new OutageLimiter(
      store,
      decideLocally(
        new MemoryLimiter(
          policiesWith(() => LIMITS),
          clock,
        ),
      ),
      new OutageLog('local', clock, recordLog('silent').logger),
      clock,
      MAX_WAITERS,
    );
    opened.push(limiter);
  });

  test('holds as many waiters as allowed in store and substitute together', async () => {
    store.goDown('down');
    expect(await wait(limiter, 'down')).toMatchObject({
      outcome: 'approved',
      outagePolicy: 'local',
    });
    void wait(limiter, 'down');
    void wait(limiter, 'up');
    await expectTooMany(limiter, 'down');
    void wait(limiter, 'up');
    expect(store.asked.map(({ request }) => request.noPlace)).toEqual([undefined, true]);
    expect(await limiter.check({ key: 'down', canWait: false })).toMatchObject({
      outcome: 'denied',
    });
  });

  test('keeps waiters that move to the substitute, and gives their places to no other', async () => {
    const waiting = [wait(limiter, 'key'), wait(limiter, 'key')];
    store.goDown('key');
    await expectTooMany(limiter, 'key');
    expect(await waiting[0]).toMatchObject({ outcome: 'approved', outagePolicy: 'local' });
    void wait(limiter, 'key');
    await expectTooMany(limiter, 'key');
  });

  test('holds another waiter after one is decided', async () => {
    const [first] = [wait(limiter, 'key'), wait(limiter, 'key')];
    store.asked[0]!.waiter.approve();
    await first;
    void wait(limiter, 'key');
    void wait(limiter, 'key');
    const places = store.asked.map(({ request }) => request.noPlace);
    expect(places).toEqual([undefined, undefined, undefined, true]);
  });
});
