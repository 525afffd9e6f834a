import { randomUUID } from 'node:crypto';

import type { CheckRequest, Decision } from '../../../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../../../src/limiter/memory/memory-limiter.js';
import { Instance } from '../../../../src/limiter/memory/instance.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';
import { UNBOUNDED } from '../../../../src/limiter/memory/keys.js';
import { Random } from '../../../support/chaos/random.js';
import { keyLimits } from '../../../support/limits.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { policiesWith } from '../../../support/policies.js';
import { type WatchedCheck, startCheck } from '../../../support/watched-check.js';

// What callers of a limiter can see is in test/support/behaviour/request-ids.ts.

const WINDOW = 1000;
const LIMITS = { windowMillis: WINDOW, maxRequests: 1000, maxRequestsInQueue: 100 };
const CONFLICT = { name: 'RequestIdConflictError' };

let clock: ManualClock;
let limiter: MemoryLimiter;
const use = (bounds: Partial<typeof UNBOUNDED>, limits = LIMITS): void => {
  clock = new ManualClock(0);
  limiter = new MemoryLimiter(
    policiesWith(() => limits),
    clock,
    bounds,
  );
};
afterEach(() => limiter.close());

const check = (requestId: string | undefined, more: Partial<CheckRequest> = {}) =>
  limiter.check({ key: 'k', canWait: false, requestId, ...more });
const wait = (requestId: string, key = 'k'): WatchedCheck =>
  startCheck(limiter, { key, canWait: true, requestId });
const used = async (): Promise<number | undefined> =>
  (await limiter.ask('inspect', { key: 'k' }))?.limits[0].used;
const approval = (requestId: string): Partial<Decision> => ({ outcome: 'approved', requestId });

describe('the bound on the ids of a key', () => {
  const MAX = 2;
  beforeEach(() => use({ maxIdsPerKey: MAX }));

  test('allows three times as many requests to be remembered, and fails more of them', async () => {
    const ids = Array.from({ length: 3 * MAX }, () => randomUUID());
    for (const id of ids) {
      expect(await check(id)).toMatchObject(approval(id));
      await limiter.ask('release', { key: 'k', requestId: id });
    }
    await expect(check(randomUUID())).rejects.toMatchObject({ reason: 'key_full' });
    await expect(check(ids[0])).rejects.toMatchObject({ ...CONFLICT, conflict: 'used' });
    expect((await check(undefined)).outcome).toBe('approved');
    expect(await used()).toBe(1);

    // Another check keeps the key.
    await clock.advance(2 * WINDOW);
    await check(undefined);
    await clock.advance(WINDOW);
    const next = randomUUID();
    expect(await check(next)).toMatchObject(approval(next));
  });

  test('does not count requests that were denied, withdrawn or given back', async () => {
    await check(undefined, { maxRequests: 1 });
    for (let i = 0; i < 3 * MAX; i += 1) {
      expect((await check(randomUUID())).outcome).toBe('denied');
      const waiting = wait(randomUUID());
      waiting.disconnect();
      expect(await waiting.decision).toEqual({ outcome: 'withdrawn' });
    }
    for (let i = 0; i < 3 * MAX; i += 1) {
      const decision = await check(randomUUID(), { maxRequests: 2 });
      void limiter.ask('giveBack', { key: 'k', claim: (decision as { claim: string }).claim });
    }
    expect(await used()).toBe(1);
  });
});

test('a request without memory for its record fails, and known ones are still answered', async () => {
  use({ maxBytes: 4000 });
  const ids: string[] = [];
  const fill = async (): Promise<void> => {
    for (;;) {
      const id = randomUUID();
      await check(id);
      ids.push(id);
    }
  };
  await expect(fill()).rejects.toMatchObject({ name: 'StoreFullError' });
  expect(ids.length).toBeGreaterThan(3);
  expect(ids.length).toBeLessThan(20);
  expect(await used()).toBe(ids.length);
  expect(await check(ids[0])).toMatchObject(approval(ids[0]!));
  await expect(check(randomUUID())).rejects.toMatchObject({ name: 'StoreFullError' });

  // The sweep gives the memory back, although other checks keep the key.
  for (let window = 0; window < 5; window += 1) {
    await clock.advance(WINDOW);
    await check(undefined);
  }
  const id = randomUUID();
  expect(await check(id)).toMatchObject(approval(id));
});

test('a request is forgotten on time also without a sweep', () => {
  const policy = { current: keyLimits(LIMITS) };
  const budget = new MemoryBudget(Infinity);
  const instance = new Instance('k', 0, policy, UNBOUNDED, budget, () => undefined);
  const id = randomUUID();
  const decide = (now: number, hits: number): string =>
    instance.check(now, id, { key: 'k', canWait: false, hits }, now);
  expect(decide(500, 1)).toBe('approved');
  expect(decide(500 + 3 * WINDOW - 1, 2)).toBe('other_hits');
  expect(decide(500 + 3 * WINDOW, 2)).toBe('approved');
});

test('a claim without memory changes nothing, also in a limit that counts the approval since it was kept', () => {
  const algorithm = { name: 'token_bucket', burst: 3 } as const;
  const window = { windowMillis: 100 * WINDOW, counts: 'hits', keepsReleased: false } as const;
  const further = [{ name: 'b', maximum: 9, ...window }];
  const policy = { current: keyLimits({ ...LIMITS, maxRequests: 3, algorithm, further }) };
  const budget = new MemoryBudget(100_000);
  const instance = new Instance('k', 0, policy, UNBOUNDED, budget, () => undefined);
  const id = randomUUID();
  // As many as a table takes before it grows.
  for (let first = 0; first < 3; first += 1) {
    expect(instance.check(0, randomUUID(), { key: 'k', canWait: false })).toBe('approved');
  }
  expect(instance.check(0, id, { key: 'k', canWait: true, keepMillis: 5000 }, 1)).toBe('waiting');
  instance.settle(WINDOW);
  const counted = (): number[] => instance.inspect(WINDOW).limits.map(({ used }) => used);
  expect(counted()).toEqual([1, 4]);

  const left = 100_000 - budget.taken;
  expect(budget.take(left)).toBe(true);
  expect(instance.claim(WINDOW, id, 1)).toBe('store_full');
  expect(counted()).toEqual([1, 4]);
  budget.giveBack(left);
  expect(instance.claim(WINDOW, id, 1)).toBe('claimed');
  expect(counted()).toEqual([1, 4]);
});

test.each([1, 2, 3, 4])('nothing is left of requests that are forgotten, with seed %i', (seed) => {
  const random = new Random(seed);
  const budget = new MemoryBudget(Infinity);
  const policy = { current: keyLimits({ ...LIMITS, maxRequests: 4 }) };
  const instance = new Instance('k', 0, policy, UNBOUNDED, budget, () => undefined);
  const ids = Array.from({ length: 12 }, () => randomUUID());
  const waiting = new Map<string, number>();
  let now = 0;
  for (let number = 1; number < 2000; number += 1) {
    now += random.pick([0, 0, 0, 1, 130, WINDOW]);
    const id = random.pick(ids);
    const holdMillis = random.pick([undefined, undefined, 1500]);
    const canWait = random.chance(0.5);
    const step = random.whole(0, 9);
    if (step < 6) {
      const request = { key: 'k', canWait, holdMillis };
      if (instance.check(now, id, request, number) === 'waiting') waiting.set(id, number);
    } else if (step < 8)
      instance.release(now, id, random.chance(0.3), random.pick([undefined, number]));
    else if (step < 9) instance.withdraw(now, id, waiting.get(id));
    else instance.amend(now, id, { holdMillis: 700 });
  }
  for (; instance.waiting > 0; now += WINDOW) instance.settle(now);
  instance.check(now, randomUUID(), { key: 'k', canWait: false }, 2000);
  expect(instance.remembersRequests).toBe(true);
  // Longer than any hold, and three windows after it.
  instance.settle(now + 1500);
  instance.forgetEnded(now + 1500 + 3 * WINDOW);
  expect(instance.remembersRequests).toBe(false);
  expect(budget.taken).toBe(0);
});

describe('a key that is idle, and remembers a request', () => {
  const id = randomUUID();
  beforeEach(async () => {
    use({ maxKeys: 1 });
    await check(id, { holdMillis: 20 * WINDOW });
    await clock.advance(19 * WINDOW);
    expect(await limiter.ask('release', { key: 'k', requestId: id })).toBe(true);
  });
  const again = (): Promise<Decision> => check(id, { holdMillis: 20 * WINDOW });

  test('is not seen', async () => {
    expect(await limiter.ask('inspect', { key: 'k' })).toBeUndefined();
    const pages = [];
    for await (const page of limiter.list()) pages.push(...page);
    expect(pages).toEqual([]);
  });

  test('is a new key at its next check, and still remembers', async () => {
    await clock.advance(WINDOW);
    expect((await check(undefined, { maxRequests: 1 })).outcome).toBe('approved');
    await expect(again()).rejects.toMatchObject({ ...CONFLICT, conflict: 'used' });
    expect(await limiter.ask('inspect', { key: 'k' })).toMatchObject({
      limits: [{ used: 1, maximum: 1, millisToWindowEnd: WINDOW }],
    });
  });

  test('takes memory for three windows', async () => {
    const other = (): Promise<Decision> => limiter.check({ key: 'other', canWait: false });
    await clock.advance(2 * WINDOW);
    await expect(other()).rejects.toMatchObject({ name: 'StoreFullError' });
    await clock.advance(WINDOW);
    expect((await other()).outcome).toBe('approved');
  });
});

describe('an approval that is not told yet', () => {
  /** More are approved together than are told in one tick. */
  const WAITERS = 40;
  const LAST = randomUUID();
  let waiters: WatchedCheck[];
  beforeEach(async () => {
    use({}, { ...LIMITS, maxRequests: 1 });
    await check(undefined);
    waiters = [];
    for (let i = 0; i < WAITERS - 1; i += 1) waiters.push(wait(randomUUID()));
    waiters.push(wait(LAST));
    expect(limiter.waiting()).toBe(WAITERS);
  });
  /** Approves all of them. */
  const approveAll = (): Promise<Decision> => check(undefined, { maxRequests: 100 });

  test('belongs to a check that comes meanwhile, and stays if the first one disconnects', async () => {
    const filler = approveAll();
    const later = check(LAST);
    const first = waiters.at(-1)!;
    first.disconnect();
    expect(await first.decision).toEqual({ outcome: 'withdrawn' });
    expect(await later).toMatchObject(approval(LAST));
    await filler;
    expect(await used()).toBe(WAITERS + 2);
  });

  test('is given back if its check disconnects, and leaves a later request alone', async () => {
    const filler = approveAll();
    void limiter.ask('release', { key: 'k', requestId: LAST, isUnused: true });
    void limiter.ask('pause', { key: 'k', millis: WINDOW });
    const later = wait(LAST);
    waiters.at(-1)!.disconnect();
    await filler;
    expect(await limiter.ask('inspect', { key: 'k' })).toMatchObject({
      limits: [{ used: WAITERS + 1 }],
      waiting: 1,
    });
    await clock.advance(WINDOW);
    expect(await later.decision).toMatchObject(approval(LAST));
  });
});

test('a claim of another limiter of the process changes nothing', async () => {
  use({});
  const id = randomUUID();
  const other = new MemoryLimiter(
    policiesWith(() => LIMITS),
    clock,
  );
  const { claim } = (await other.check({ key: 'k', canWait: false, requestId: id })) as {
    claim: string;
  };
  await check(id);
  void limiter.ask('giveBack', { key: 'k', claim });
  expect(await used()).toBe(1);
  await other.close();
});
