import { CallerPresence } from '../../../../src/limiter/request.js';
import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { MemoryLimiter } from '../../../../src/limiter/memory/memory-limiter.js';
import { OutageLimiter } from '../../../../src/limiter/outage/outage-limiter.js';
import { OutageLog } from '../../../../src/limiter/outage/outage-log.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog } from '../../../support/recorded-log.js';
import { StoreLimiterStub } from '../../../support/store-limiter-stub.js';
import { startCheck, type WatchedCheck } from '../../../support/watched-check.js';
import { policiesWith } from '../../../support/policies.js';

const ONE_APPROVAL = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };
const WITHDRAWN = { outcome: 'withdrawn' };

let clock: ManualClock;
let store: StoreLimiterStub;
let local: MemoryLimiter;
beforeEach(() => {
  clock = new ManualClock(0);
  store = new StoreLimiterStub();
  local = new MemoryLimiter(
    policiesWith(() => ONE_APPROVAL),
    clock,
  );
});
afterEach(() => local.close());

function limiterWith(substitute: MemoryLimiter | undefined): OutageLimiter {
  return new OutageLimiter(
    store,
    substitute,
    new OutageLog('local', clock, recordLog('silent').logger),
    clock,
  );
}

/** Checks that wait in the store, in this order. */
function startWaiting(limiter: OutageLimiter, ...keys: string[]): WatchedCheck[] {
  return keys.map((key) => startCheck(limiter, { key, canWait: true }));
}

/** The indexes of the checks, in the order in which they are decided. */
function orderOf(checks: readonly WatchedCheck[]): number[] {
  const order: number[] = [];
  for (const [i, { decision }] of checks.entries()) {
    decision.then(
      () => order.push(i),
      () => undefined,
    );
  }
  return order;
}

async function quiet(): Promise<void> {
  for (let i = 0; i < 3; i += 1) await new Promise(setImmediate);
}

const twenty = Array.from({ length: 20 }, () => 'key');
const indexes = twenty.map((_key, i) => i);

describe('waiters, when the store goes down,', () => {
  test('are approved in their order with the policy allow', async () => {
    const checks = startWaiting(limiterWith(undefined), ...twenty);
    const order = orderOf(checks);
    await quiet();
    expect(order).toEqual([]);
    store.goDown('key');
    await quiet();
    expect(order).toEqual(indexes);
    for (const { settled } of checks) {
      expect(settled).toMatchObject({ outcome: 'approved', outagePolicy: 'allow' });
    }
  });

  test('wait no longer in total than their maximum wait', async () => {
    await local.check({ key: 'key', canWait: false });
    const limiter = limiterWith(local);
    const long = startCheck(limiter, { key: 'key', canWait: true, maxWaitMillis: 1000 });
    const short = startCheck(limiter, { key: 'key', canWait: true, maxWaitMillis: 999 });
    const shortest = startCheck(limiter, { key: 'key', canWait: true, maxWaitMillis: 300 });
    await clock.advance(400);
    store.goDown('key');
    await quiet();
    expect(shortest.settled).toMatchObject({ reason: 'turn_too_late', outagePolicy: 'local' });
    expect(short.settled).toMatchObject({ reason: 'turn_too_late', outagePolicy: 'local' });
    expect(long.settled).toBeUndefined();
    await clock.advance(600, { afterTimers: quiet });
    expect(long.settled).toMatchObject({ outcome: 'approved', waited: true });
  });

  test('come before checks that arrive while it is down', async () => {
    const limiter = limiterWith(local);
    const checks = startWaiting(limiter, 'key', 'key');
    store.goDown('key');
    checks.push(...startWaiting(limiter, 'key'));
    const order = orderOf(checks);
    await quiet();
    await clock.advance(1000, { afterTimers: quiet });
    await clock.advance(1000, { afterTimers: quiet });
    expect(order).toEqual([0, 1, 2]);
  });

  test('keep their overrides', async () => {
    const limiter = limiterWith(local);
    const checks = Array.from({ length: 3 }, () =>
      startCheck(limiter, { key: 'key', canWait: true, maxRequests: 2, maxRequestsInQueue: 7 }),
    );
    store.goDown('key');
    await quiet();
    expect(checks.map(({ settled }) => settled?.outcome)).toEqual([
      'approved',
      'approved',
      undefined,
    ]);
    expect(await local.ask('inspect', { key: 'key' })).toMatchObject({
      limits: [{ maximum: 2 }],
      maxRequestsInQueue: 7,
    });
  });

  test('are moved only if their keys belong to it', async () => {
    const checks = startWaiting(limiterWith(undefined), 'key', 'other', 'key', 'other');
    store.goDown('key');
    await quiet();
    expect(checks.map(({ settled }) => settled?.outcome)).toEqual([
      'approved',
      undefined,
      'approved',
      undefined,
    ]);
    expect(store.withdrawn).toEqual(['id 0', 'id 2']);

    store.asked[3]!.waiter.approveFromQueue();
    expect(await checks[3]!.decision).toEqual({
      outcome: 'approved',
      requestId: 'id 3',
      waited: true,
    });
  });

  test('stay on this replica until they are decided, even after it comes back', async () => {
    const [, second] = startWaiting(limiterWith(local), 'key', 'key');
    store.goDown('key');
    await quiet();
    store.comeBack();
    await clock.advance(1000);
    expect(await second!.decision).toMatchObject({ outcome: 'approved', outagePolicy: 'local' });
    expect(store.asked).toHaveLength(2);
  });

  test('fail if the replica stops at the same time', async () => {
    const limiter = limiterWith(undefined);
    const [check] = startWaiting(limiter, 'key');
    const turnedAway = expect(check!.decision).rejects.toMatchObject({ reason: 'shutting_down' });
    store.goDown('key');
    await limiter.close();
    await turnedAway;
  });
});

describe('when the store goes down while it decides', () => {
  test('its approval holds', async () => {
    const [check] = startWaiting(limiterWith(undefined), 'key');
    store.asked[0]!.waiter.approveFromQueue();
    store.goDown('key');
    expect(await check!.decision).toEqual({ outcome: 'approved', requestId: 'id 0', waited: true });
    expect(store.withdrawn).toEqual([]);
  });

  test.each([
    ['before', ['fail', 'goDown']],
    ['after', ['goDown', 'fail']],
  ])('a check that fails %s the store goes down is decided once', async (_what, steps) => {
    const [check] = startWaiting(limiterWith(local), 'key');
    for (const step of steps) {
      if (step === 'fail') store.asked[0]!.waiter.fail(new StoreUnavailableError());
      else store.goDown('key');
    }
    expect(await check!.decision).toMatchObject({ outcome: 'approved', outagePolicy: 'local' });
    expect(await local.ask('inspect', { key: 'key' })).toMatchObject({
      limits: [{ used: 1 }],
      waiting: 0,
    });
  });
});

describe('a client that disconnects', () => {
  test('before its check is moved is withdrawn, and this replica gets no check', async () => {
    const [check] = startWaiting(limiterWith(local), 'key');
    check!.disconnect();
    store.goDown('key');
    expect(await check!.decision).toEqual(WITHDRAWN);
    expect(await local.ask('inspect', { key: 'key' })).toBeUndefined();
  });

  test('while it waits on this replica makes room for the next', async () => {
    const [, disconnecting, next] = startWaiting(limiterWith(local), ...['key', 'key', 'key']);
    store.goDown('key');
    await quiet();
    disconnecting!.disconnect();
    expect(await disconnecting!.decision).toEqual(WITHDRAWN);
    await clock.advance(1000);
    expect(await next!.decision).toMatchObject({ outcome: 'approved', outagePolicy: 'local' });
  });

  test.each(indexes)('%d steps into the move holds no place afterwards', async (steps) => {
    const [first, disconnecting] = startWaiting(limiterWith(local), 'key', 'key');
    store.goDown('key');
    for (let i = 0; i < steps; i += 1) await Promise.resolve();
    disconnecting!.disconnect();
    expect(await disconnecting!.decision).toEqual(WITHDRAWN);
    expect(await first!.decision).toMatchObject({ outcome: 'approved', outagePolicy: 'local' });
    expect(await local.ask('inspect', { key: 'key' })).toMatchObject({
      limits: [{ used: 1 }],
      waiting: 0,
    });
  });

  test('before its check begins is withdrawn at once', async () => {
    const caller = new CallerPresence();
    caller.disconnect();
    const limiter = limiterWith(undefined);
    expect(await limiter.check({ key: 'key', canWait: true }, caller)).toEqual(WITHDRAWN);
  });
});
