import type { Redis } from 'ioredis';

import { CallerHistory, UNKNOWN_HISTORY } from '../../../src/redis/caller-history.js';
import { ManualClock } from '../../support/manual-clock.js';

const LEASE = 3000;
/** How far Redis's clock is ahead of the replica's. */
const AHEAD = 1_000_000;

const clock = new ManualClock(0);
let isAway = false;
let rulesLoadedAt = 0;
let onReady: () => void = () => undefined;
let primaries = new Map<string, Redis>();
let history: CallerHistory;

const server = Object.create(null) as Redis;

beforeEach(() => {
  isAway = false;
  rulesLoadedAt = clock.now();
  primaries = new Map([['primary', server]]);
  history = new CallerHistory({
    connections: {
      primaries: () => primaries,
      shardOf: (name) => name,
      onReady: (callback) => (onReady = callback),
    },
    clock,
    rulesLoadedAt: () => rulesLoadedAt,
    leaseMillis: LEASE,
    readTime: () =>
      isAway ? Promise.reject(new Error('down')) : Promise.resolve(clock.now() + AHEAD),
  });
});

afterEach(() => {
  history.dispose();
});

const known = (): number[] => history.of('primary').split(':').map(Number);

test('nothing is known before Redis has answered, or about an unknown shard', async () => {
  expect(history.of('another')).toBe(UNKNOWN_HISTORY);
  isAway = true;
  primaries.set('silent', server);
  await clock.advance(LEASE);
  expect(history.of('silent')).toBe(UNKNOWN_HISTORY);
});

test("all times are in Redis's time", async () => {
  const begun = clock.now();
  await clock.advance(1);
  expect(known()).toEqual([begun, begun, begun].map((millis) => millis + AHEAD));
});

test('contact goes on while Redis answers, even without requests', async () => {
  await clock.advance(1);
  const [, since] = known();
  await clock.advance(2 * LEASE);
  const [, sinceThen, until] = known();
  expect(sinceThen).toBe(since);
  expect(until).toBeGreaterThan(clock.now() + AHEAD - LEASE / 2);
});

test('contact begins again after half a lease without an answer of Redis, and no sooner', async () => {
  await clock.advance(1);
  const [, since] = known();
  isAway = true;
  await clock.advance(LEASE / 3);
  isAway = false;
  onReady();
  await clock.advance(1);
  expect(known()[1]).toBe(since);
  isAway = true;
  await clock.advance(LEASE / 2);
  isAway = false;
  onReady();
  await clock.advance(1);
  expect(known()[1]).toBeGreaterThan(clock.now() + AHEAD - 10);
});

test('rules that are loaded later are known at once', async () => {
  await clock.advance(10);
  rulesLoadedAt = clock.now();
  expect(known()[0]).toBe(clock.now() + AHEAD);
});

test('each shard has its own history, and a removed shard has none', async () => {
  primaries.set('second', server);
  await clock.advance(LEASE);
  const [, since] = history.of('second').split(':').map(Number);
  expect(since).toBeGreaterThan(known()[1]!);
  primaries.delete('second');
  await clock.advance(LEASE);
  expect(history.of('second')).toBe(UNKNOWN_HISTORY);
});

test('a history that is disposed of asks no more', () => {
  expect(clock.isAwaited).toBe(true);
  history.dispose();
  expect(clock.isAwaited).toBe(false);
});
