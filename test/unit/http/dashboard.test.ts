import { ListingForbiddenError, StoreUnavailableError } from '../../../src/limiter/errors.js';
import type { Asked, InstanceState } from '../../../src/limiter/limiter.js';
import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import {
  countsHeldOnly,
  fillOf,
  KeySurvey,
  type Lately,
  needOf,
  statesOf,
} from '../../../src/http/routes/ui/key-survey.js';
import type { KeyRates } from '../../../src/service/fleet/fleet.js';
import { ManualClock } from '../../support/manual-clock.js';
import { recordLog } from '../../support/recorded-log.js';
import { until } from '../../support/until.js';
import { NO_DENIALS } from '../../../src/service/deciding/recent-denials.js';
import { knowledgeOf } from '../../../src/http/routes/ui/overview.js';

function state(key: string, { used = 0, denied = 0, waiting = 0 } = {}): InstanceState {
  const own = { ...ownLimit(1000, 2), used, millisToWindowEnd: 1000 };
  return {
    key,
    limits: [own],
    maxRequestsInQueue: 3,
    held: 0,
    denied,
    waiting,
    pausedMillis: 0,
  };
}

/** A limiter that lists the pages that the test gives. */
class Listed {
  lists = 0;
  examined: string[] = [];
  constructor(private readonly pages: () => AsyncIterable<readonly InstanceState[]>) {}

  list(): AsyncIterable<readonly InstanceState[]> {
    this.lists += 1;
    return this.pages();
  }

  ask(_examine: 'examine', { key }: Asked<'examine'>): Promise<undefined> {
    this.examined.push(key);
    return Promise.resolve(undefined);
  }
}

async function* pagesOf(...pages: InstanceState[][]): AsyncIterable<readonly InstanceState[]> {
  for (const page of pages) yield await Promise.resolve(page);
}

const log = recordLog();

test('no walk begins before a look, and looks at the same time share one walk', async () => {
  const limiter = new Listed(() => pagesOf([state('a')], [state('b')]));
  const survey = new KeySurvey(limiter, log.logger, new ManualClock(0));
  expect(limiter.lists).toBe(0);
  const [first, second] = await Promise.all([survey.look(), survey.look()]);

  expect(limiter.lists).toBe(1);
  expect([...first.states.keys()]).toEqual(['a', 'b']);
  expect(second.states).toBe(first.states);
  expect((await survey.look()).states).toBe(first.states);
  expect(limiter.lists).toBe(1);
});

test('the first look after a pause sees the old survey, and starts a new walk', async () => {
  let round = 0;
  const limiter = new Listed(() => pagesOf([state(`round-${(round += 1)}`)]));
  const clock = new ManualClock(0);
  const survey = new KeySurvey(limiter, log.logger, clock);
  const look = async (): Promise<string[]> => [...(await survey.look()).states.keys()];
  await look();
  await clock.advance(10_000);

  expect(await look()).toEqual(['round-1']);
  await until(async () => (await look())[0] === 'round-2');
  expect(limiter.lists).toBe(2);
});

test('after a walk no other begins for 150 times its length', async () => {
  const clock = new ManualClock(0);
  const limiter = new Listed(async function* () {
    await clock.advance(30);
    yield [state('a')];
  });
  const survey = new KeySurvey(limiter, log.logger, clock);
  await survey.look();
  await clock.advance(150 * 30 - 1);
  await survey.look();
  expect(limiter.lists).toBe(1);
  // The work of its pause counts as well.
  await clock.advance(1 + 150 * 0.1);
  await survey.look();

  expect(limiter.lists).toBe(2);
});

test('the next look after an outage says that the store is back, however long a walk took', async () => {
  const clock = new ManualClock(0);
  let isDown = false;
  const limiter = new Listed(async function* () {
    yield [state('a')];
    if (!isDown) return;
    await clock.advance(600);
    yield [state('b')];
    throw new StoreUnavailableError();
  });
  const survey = new KeySurvey(limiter, log.logger, clock);
  await survey.look();
  await clock.advance(10_000);
  isDown = true;
  await survey.look();
  await until(async () => (await survey.look()).failure === 'unavailable');

  isDown = false;
  expect((await survey.look()).failure).toBeUndefined();
});

test('a look during a long first walk sees what has been found so far', async () => {
  let goOn!: () => void;
  const rest = new Promise<void>((resolve) => (goOn = resolve));
  const limiter = new Listed(async function* () {
    yield [state('a')];
    await rest;
    yield [state('b')];
  });
  const survey = new KeySurvey(limiter, log.logger);
  const early = await survey.look();
  expect([early.isComplete, [...early.states.keys()]]).toEqual([false, ['a']]);
  goOn();
  await until(async () => (await survey.look()).isComplete);
  expect([...(await survey.look()).states.keys()]).toEqual(['a', 'b']);
});

test('of very many keys, notable keys are kept and all are counted', async () => {
  const many = Array.from({ length: 30_000 }, (_, i) => state(`key-${i}`, { used: 1 }));
  const noted = [state('full', { used: 2 }), state('denies', { denied: 1 })];
  const survey = new KeySurvey(new Listed(() => pagesOf(many, noted)), log.logger);
  await until(async () => (await survey.look()).isComplete);
  const { keys, states } = await survey.look();

  expect([keys, states.size]).toEqual([30_002, 20_002]);
  expect([states.has('full'), states.has('denies')]).toEqual([true, true]);
});

test('of very many notable keys, a bounded number is kept', async () => {
  const many = Array.from({ length: 60_000 }, (_, i) => state(`key-${i}`, { waiting: 1 }));
  const survey = new KeySurvey(new Listed(() => pagesOf(many)), log.logger);
  await until(async () => (await survey.look()).isComplete);
  const { keys, states } = await survey.look();
  expect([keys, states.size]).toEqual([60_000, 50_000]);
});

test('the longest queues are examined for replicas', async () => {
  const queues = Array.from({ length: 20 }, (_, i) => state(`key-${i}`, { waiting: i }));
  const limiter = new Listed(() => pagesOf(queues));
  await new KeySurvey(limiter, log.logger).look();
  expect(limiter.examined).toEqual(['key-19', 'key-18', 'key-17', 'key-16', 'key-15']);
});

test.each([
  ['forbidden', new ListingForbiddenError({}), []],
  ['fault', new Error('broken'), ['keys not surveyed']],
])('a walk that fails is reported: %s', async (failure, error, lines) => {
  const recorded = recordLog();
  // eslint-disable-next-line require-yield -- fails before its first page
  const limiter = new Listed(async function* () {
    throw await Promise.resolve(error);
  });
  const survey = await new KeySurvey(limiter, recorded.logger).look();
  expect(survey).toMatchObject({ failure, keys: 0 });
  expect(recorded.messages).toEqual(lines);
});

test('a survey has what was read of its keys since, and no further keys', async () => {
  const limiter = new Listed(() => pagesOf([state('a'), state('b')]));
  const survey = new KeySurvey(limiter, log.logger);
  await survey.look();
  survey.update('a', state('a', { used: 2 }));
  survey.update('b', undefined);
  survey.update('c', state('c'));
  survey.update('d', undefined);
  const { states, keys } = await survey.look();

  expect([...states.values()]).toEqual([state('a', { used: 2 })]);
  expect(keys).toBe(1);
});

const fillWith = (used: number, maximum: number, algorithm: Algorithm): number =>
  fillOf({
    limits: [{ ...ownLimit(1000, maximum, algorithm), used, millisToWindowEnd: 1000 }],
  });

test.each<[algorithm: Algorithm, used: number, maximum: number, fill: number]>([
  [DEFAULT_ALGORITHM, 3, 12, 0.25],
  [{ name: 'sliding_window', steps: 10 }, 3, 12, 0.25],
  [{ name: 'token_bucket', burst: 6 }, 3, 12, 0.5],
  // The burst in force is at most the maximum.
  [{ name: 'token_bucket', burst: 6 }, 3, 4, 0.75],
  [{ name: 'token_bucket', burst: 6 }, 0, 0, 1],
])('a limit with %j is full by what may count at once', (algorithm, used, maximum, fill) => {
  expect(fillWith(used, maximum, algorithm)).toBe(fill);
});

const key = (used: number, more: Partial<InstanceState> = {}): InstanceState => ({
  ...{ key: 'key', maxRequestsInQueue: 5, held: 0, denied: 0, waiting: 0, pausedMillis: 0 },
  limits: [{ ...ownLimit(1000, 10), used, millisToWindowEnd: 1000 }],
  ...more,
});
/** A key that is denied, and was denied last so long ago. */
const denied = (perSecond: number, lastMillis = 1): Lately => ({
  run: {
    ...{ key: 'key', perSecond, count: 1, byReason: NO_DENIALS, lastReason: 'limit_reached' },
    ...{ isShadow: false, sinceMillis: lastMillis, lastMillis },
  },
  rates: undefined,
});
const rates = (approved: number, more: Partial<KeyRates> = {}): KeyRates => ({
  ...{ approved, denied: 0, series: [], isHeldOnly: false },
  ...more,
});
const busy = (approved: number): Lately => ({ run: undefined, rates: rates(approved) });
const QUIET: Lately = { run: undefined, rates: undefined };

test('a key has all of its states, in the order in which they need a person', () => {
  const all = key(1, { pausedMillis: 1, waiting: 5, held: 1 });
  const others = ['queue_full', 'waiting', 'held'];
  expect(statesOf(all, denied(1))).toEqual(['paused', 'denied', ...others, 'used']);
  expect(statesOf(all, denied(1, 30_000))).toEqual(['paused', ...others, 'was_denied', 'used']);
  expect(statesOf(key(0, { denied: 1 }), QUIET)).toEqual(['denied']);
  expect(statesOf(key(0), busy(1))).toEqual(['used']);
  expect(statesOf(key(0, { maxRequestsInQueue: 0 }), QUIET)).toEqual([]);
  const closed = { ...ownLimit(1000, 0), used: 0, millisToWindowEnd: 1000 };
  expect(statesOf(key(0, { limits: [closed] }), QUIET)).toEqual([]);
});

test.each<[says: string, expected: boolean, of: { held: number; used?: number; rates?: KeyRates }]>(
  [
    ['all that counts is held', true, { held: 1 }],
    ['nothing counts', false, { held: 0 }],
    ['more counts than is held', false, { held: 1, used: 2 }],
    ['the last approvals had holds', true, { held: 0, rates: rates(0, { isHeldOnly: true }) }],
    ['approvals without a hold were not long ago', false, { held: 1, rates: rates(0) }],
  ],
)('whether a limit says how many are at work at once: %s, %s', (_says, expected, of) => {
  const { held, used = held } = of;
  const own = { ...ownLimit(1000, 5), used, millisToWindowEnd: 1000 };
  expect(countsHeldOnly({ held, limits: [own] }, of.rates)).toBe(expected);
  const bucket = { ...ownLimit(1000, 5, { name: 'token_bucket', burst: 5 }), used };
  const limits = [{ ...bucket, millisToWindowEnd: 0 }] as const;
  expect(countsHeldOnly({ held, limits }, of.rates)).toBe(false);
});

test('a key is as full as its fullest limit', () => {
  const [own] = key(1).limits;
  const further = { ...own, name: 'hour', used: 9 };
  expect(fillOf({ limits: [own, further] })).toBe(0.9);
  expect(fillOf({ limits: [{ ...own, used: 11 }, further] })).toBe(1);
});

test('a key needs a person by its first state, and then by how much it has of that', () => {
  const day = { limits: [{ ...key(9).limits[0], windowMillis: 86_400_000 }] as const };
  const needs = [
    needOf(key(9, { pausedMillis: 2000 }), denied(99)),
    needOf(key(9, { pausedMillis: 1000 }), denied(99)),
    needOf(key(9, { waiting: 5 }), denied(2)),
    needOf(key(9, { waiting: 5 }), denied(1)),
    needOf(key(9, { waiting: 9 }), QUIET),
    needOf(key(9, { waiting: 5 }), QUIET),
    needOf(key(9, { waiting: 2 }), QUIET),
    needOf(key(0, { held: 2 }), QUIET),
    needOf(key(9, { held: 1 }), QUIET),
    // An old denial does not come before a contended key.
    needOf(key(9), denied(5, 20_001)),
    needOf(key(9, { denied: 1, ...day }), QUIET),
    needOf(key(1), busy(50)),
    needOf(key(9), busy(5)),
    needOf(key(9), QUIET),
    needOf(key(1), QUIET),
    needOf(key(0), QUIET),
  ];
  expect(needs).toEqual(needs.toSorted((a, b) => b - a));
  expect(new Set(needs).size).toBe(needs.length);
});

test('keys that are about equally busy keep their places', () => {
  expect(needOf(key(1), busy(101))).toBe(needOf(key(1), busy(100)));
});

const NOW = 100_000;
const FLEET = { isCurrent: true, readAt: NOW - 500 };
const SURVEY = { isComplete: true, ageMillis: 7000, failure: undefined };
const FRESH = { isCurrent: true };
const OLD = { isCurrent: false };

test('an answer is complete if all replicas, keys and rows could be read', () => {
  const complete = { isComplete: true, asOfMillis: NOW, nowMillis: NOW };
  expect(knowledgeOf(FLEET, SURVEY, [FRESH], NOW)).toEqual(complete);
  const forbidden = { ...SURVEY, failure: 'forbidden' } as const;
  expect(knowledgeOf(FLEET, forbidden, [FRESH], NOW)).toEqual(complete);
});

test.each([
  ['the replicas', { ...FLEET, isCurrent: false }, SURVEY, [FRESH], NOW - 500],
  ['a row', FLEET, SURVEY, [FRESH, OLD], NOW - 7000],
  ['the keys', FLEET, { ...SURVEY, failure: 'unavailable' } as const, [], NOW - 7000],
  ['anything', { ...FLEET, isCurrent: false }, SURVEY, [OLD], NOW - 7000],
  ['anything ever', { isCurrent: false, readAt: undefined }, SURVEY, [], null],
  ['the keys ever', FLEET, { ...SURVEY, isComplete: false }, [OLD], null],
])('without %s it is as of what was read last', (_what, fleet, survey, rows, asOfMillis) => {
  const expected = { isComplete: false, asOfMillis, nowMillis: NOW };
  expect(knowledgeOf(fleet, survey, rows, NOW)).toEqual(expected);
});
