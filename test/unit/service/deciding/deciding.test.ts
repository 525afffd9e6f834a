import { setImmediate as nextTick } from 'node:timers/promises';

import { parseSettings } from '../../../../src/config/settings.js';
import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import type {
  CheckRequest,
  Decision,
  Quota,
  DenialReason,
} from '../../../../src/limiter/limiter.js';
import { withoutRules, defaultPolicy } from '../../../../src/rules/rules.js';
import { openAccess } from '../../../../src/service/callers/access.js';
import { checkDecider, type Decided } from '../../../../src/service/deciding/decide-check.js';
import { RecentDenials, type DeniedKey } from '../../../../src/service/deciding/recent-denials.js';
import type { ConnectedRequest } from '../../../../src/service/request-context.js';
import { quotaOf } from '../../../support/quota.js';
import { ownLimit, forEachLimit } from '../../../../src/limiter/limits.js';
import type { QueueList, QueueOrder } from '../../../../src/limiter/queue-order.js';
import { withCountedLimits } from '../../../../src/service/deciding/counted-limits.js';
import { type AskedCheck, inItsList } from '../../../../src/service/deciding/lists-of-checks.js';
import type { KeyPolicy } from '../../../../src/rules/policy.js';
import { DEFAULTS } from '../../../support/settings.js';
import { restTaker } from '../../../../src/service/deciding/rest-of-window.js';
import { Slices } from '../../../../src/service/deciding/slices.js';

const CHECK: CheckRequest = { key: 'a', canWait: false };
const QUOTA = quotaOf(1);
const CONTEXT: ConnectedRequest = {
  correlationId: 'id',
  owner: 'the caller',
  startedAt: 0,
  headers: {},
  caller: {
    name: 'the caller',
    scopes: ['check'],
    waitingShare: undefined,
    mayUse: () => true,
    mayUseAll: true,
  },
  whilePresent: () => Promise.reject(new Error('waits')),
};

/** Decides the check with a limiter that gives this answer. */
function decideBy(answer: () => Promise<Decision>) {
  const settings = parseSettings({});
  const rules = withoutRules(settings);
  const recentDenials = new RecentDenials();
  const counted: Decision[] = [];
  const undecided: string[] = [];
  const decide = checkDecider({
    limiter: { check: answer, reportRemaining: () => Promise.reject(new Error('no report')) },
    policyOf: (key) => rules.current.policyOf(key),
    metrics: { decided: (decision) => counted.push(decision) },
    undecided: { record: (reason) => undecided.push(reason) },
    recentDenials,
    watchedKeys: { record: () => undefined },
    access: openAccess(),
    settings,
  });
  const decided = new Promise<Decided>((resolve, reject) => {
    decide(CHECK, CONTEXT, resolve, reject);
  });
  return { decided, recentDenials, counted, undecided };
}

test.each<Decision>([{ outcome: 'approved', requestId: 'id' }, { outcome: 'withdrawn' }])(
  '%j is returned with the policy of its key and counted, and is not a recent denial',
  async (decision) => {
    const { decided, recentDenials, counted } = decideBy(() => Promise.resolve(decision));

    expect(await decided).toMatchObject({ decision, policy: { isShadow: false } });
    expect(counted).toEqual([decision]);
    expect(recentDenials.all()).toEqual([]);
  },
);

test('a denial is returned and counted, and is a recent denial of its caller', async () => {
  const denial: Decision = { outcome: 'denied', reason: 'queue_full', quota: QUOTA };
  const { decided, recentDenials, counted } = decideBy(() => Promise.resolve(denial));

  expect(await decided).toMatchObject({ decision: denial });
  expect(counted).toEqual([denial]);
  expect(recentDenials.all()).toMatchObject([
    { key: 'a', lastReason: 'queue_full', caller: 'the caller' },
  ]);
});

test('a check that is not decided fails with its error, and is counted by its reason', async () => {
  const error = new StoreUnavailableError();
  const { decided, recentDenials, counted, undecided } = decideBy(() => Promise.reject(error));

  await expect(decided).rejects.toBe(error);
  expect(undecided).toEqual(['store_unavailable']);
  expect([counted, recentDenials.all()]).toEqual([[], []]);
});

describe('counted limits', () => {
  const LEFT = { remaining: 1, resetMillis: 5 };
  const OWN = { ...ownLimit(1000, 9), ...LEFT };
  const DAY = { ...OWN, name: 'day' };
  const SHARE = { ...OWN, name: 'share', lanes: ['batch', 'night'] };
  const QUOTA: Quota = { limits: [OWN, SHARE, DAY] };

  const laneOf = (name: string): QueueList => ({ kind: 'lane', name, headStartMillis: 0 });
  const GROUP: QueueList = { kind: 'group', name: 'batch', weight: 1, maxRequests: undefined };

  const denied = (quota: Quota): Decision => ({
    outcome: 'denied',
    reason: 'limit_reached',
    quota,
  });

  test.each([laneOf('batch'), laneOf('night')])('a limit of lanes counts %j', (list) => {
    const decision = denied(QUOTA);
    expect(withCountedLimits(decision, list)).toBe(decision);
  });

  test.each([laneOf('interactive'), GROUP, undefined])(
    'a limit of other lanes is not in the quota of %j',
    (list) => {
      expect(withCountedLimits(denied(QUOTA), list)).toEqual(denied({ limits: [OWN, DAY] }));
    },
  );

  test.each<Decision>([
    { outcome: 'withdrawn' },
    { outcome: 'approved', requestId: 'id', quota: undefined },
  ])('%j is as it was', (decision) => {
    expect(withCountedLimits(decision, laneOf('interactive'))).toBe(decision);
  });
});

describe('the list of a check', () => {
  const CHECK: AskedCheck = { key: 'a', canWait: true };
  const LANES: QueueOrder = {
    kind: 'lanes',
    lanes: [
      { name: 'interactive', headStartMillis: 30_000 },
      { name: 'batch', headStartMillis: 0 },
    ],
  };
  const FAIR: QueueOrder = {
    kind: 'fair',
    maxRequestsInQueuePerGroup: 100,
    weights: new Map([['gold', 4]]),
  };

  test('a check of a key with one list is passed on as it is', () => {
    expect(inItsList(CHECK, { queueOrder: undefined })).toBe(CHECK);
  });

  test.each([
    [undefined, 'batch', 0],
    ['batch', 'batch', 0],
    ['interactive', 'interactive', 30_000],
  ])('the lane %j is %s', (lane, name, headStartMillis) => {
    expect(inItsList({ ...CHECK, lane }, { queueOrder: LANES })).toEqual({
      ...CHECK,
      list: { kind: 'lane', name, headStartMillis },
    });
  });

  test.each([
    [undefined, '', 1],
    ['gold', 'gold', 4],
    ['tenant-7', 'tenant-7', 1],
  ])('the group %j is %j, with the weight %i', (group, name, weight) => {
    expect(inItsList({ ...CHECK, group }, { queueOrder: FAIR })).toEqual({
      ...CHECK,
      list: { kind: 'group', name, weight, maxRequests: 100 },
    });
  });

  test('the name of the lane or the group is not passed on', () => {
    const passedOn = [
      inItsList({ ...CHECK, lane: 'batch' }, { queueOrder: LANES }),
      inItsList({ ...CHECK, group: 'gold' }, { queueOrder: FAIR }),
    ];
    expect(passedOn.map((check) => Object.keys(check))).toEqual([
      ['key', 'canWait', 'list'],
      ['key', 'canWait', 'list'],
    ]);
  });

  test.each<[named: object, order: QueueOrder | undefined, error: string]>([
    [{ lane: 'batch' }, undefined, 'lane must be left out: the key has no lanes'],
    [{ lane: 'batch' }, FAIR, 'lane must be left out: the key has no lanes'],
    [{ lane: 'bach' }, LANES, 'lane must be one of interactive, batch'],
    [{ lane: '' }, LANES, 'lane must be one of interactive, batch'],
    [{ group: 'gold' }, undefined, 'group must be left out: the key has no fair groups'],
    [{ group: 'gold' }, LANES, 'group must be left out: the key has no fair groups'],
    [{ lane: 'batch', group: 'gold' }, LANES, 'group must be left out: the key has no fair groups'],
  ])('%j of a key with the order %j is rejected', (named, queueOrder, error) => {
    expect(() => inItsList({ ...CHECK, ...named }, { queueOrder })).toThrow(error);
  });
});

describe('recent denials', () => {
  const MINUTE = 60_000;

  let now: number;
  let denials: RecentDenials;
  beforeEach(() => {
    now = 1_000_000;
    denials = new RecentDenials(() => now);
  });

  const runOf = (key: string): DeniedKey | undefined =>
    denials.all().find((one) => one.key === key);

  function policyOf(...windows: [number, ...number[]]): KeyPolicy {
    const limits = forEachLimit(windows, (windowMillis) => ownLimit(windowMillis, 1));
    return { ...defaultPolicy(DEFAULTS), limits };
  }

  function deny(
    key: string,
    reason: DenialReason = 'limit_reached',
    windowMillis = 1000,
    caller?: string,
  ): void {
    const policy = policyOf(windowMillis);
    denials.record(key, reason, policy, caller);
  }

  test('a denial is remembered with its reason and its time', () => {
    deny('a');
    now += 5000;
    deny('a', 'queue_full');
    now += 700;

    expect(runOf('a')).toMatchObject({
      key: 'a',
      count: 2,
      byReason: { limit_reached: 1, queue_full: 1, turn_too_late: 0, wait_expired: 0 },
      lastReason: 'queue_full',
      sinceMillis: 5700,
      lastMillis: 700,
    });
    expect(denials.all()).toEqual([runOf('a')]);
  });

  test('the caller that was denied last is known', () => {
    deny('a', 'limit_reached', 1000, 'first');
    deny('a', 'limit_reached', 1000, 'second');
    expect(runOf('a')?.caller).toBe('second');
  });

  test('the limit that denied last is known, if the key has several', () => {
    const policy = policyOf(1000);
    denials.record('a', 'limit_reached', policy, undefined, 'hour');
    expect(runOf('a')?.lastLimit).toBe('hour');
    denials.record('a', 'paused', policy, undefined);
    expect(runOf('a')?.lastLimit).toBeUndefined();
  });

  test('denials are forgotten after a minute without one, and begin again with the next', () => {
    deny('a');
    now += MINUTE;
    expect(runOf('a')).toMatchObject({ count: 1, lastMillis: MINUTE });
    now += 1;
    expect([runOf('a'), denials.all()]).toEqual([undefined, []]);
    deny('a');
    expect(runOf('a')).toMatchObject({ count: 1, sinceMillis: 0 });
  });

  test.each([
    ['a longer window', policyOf(5 * MINUTE)],
    ['a longer further limit', policyOf(1000, 2000, 5 * MINUTE)],
  ])('denials of a key with %s are forgotten after a window of that', (_what, policy) => {
    denials.record('a', 'limit_reached', policy, undefined);
    now += 5 * MINUTE;
    expect(runOf('a')).toMatchObject({ count: 1 });
    now += 1;
    expect(runOf('a')).toBeUndefined();
  });

  test.each([2, 15, 300])('a steady rate is known after %i seconds', (seconds) => {
    for (let i = 0; i < seconds * 20; i += 1) {
      now += 50;
      deny('a');
    }
    const { perSecond } = runOf('a')!;
    expect(perSecond).toBeGreaterThan(18);
    expect(perSecond).toBeLessThan(22);
  });

  test('the rate falls by half in ten seconds without a denial', () => {
    for (let i = 0; i < 2000; i += 1) {
      now += 50;
      deny('a');
    }
    const before = runOf('a')!.perSecond;
    now += 10_000;
    expect(runOf('a')!.perSecond / before).toBeCloseTo(0.5, 1);
  });

  test('of many keys, the ones that were denied last are kept', () => {
    for (let i = 0; i < 10_000; i += 1) deny(`key-${i}`);
    expect(denials.all().length).toBeLessThanOrEqual(2000);
    expect(runOf('key-9999')).toBeDefined();
    expect(runOf('key-9000')).toBeDefined();
    expect(runOf('key-0')).toBeUndefined();
  });
});

const LIMIT = { ...ownLimit(1000, 8), remaining: 3, resetMillis: 500 };
const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: { limits: [LIMIT] } };

function watchedReports() {
  const reported: string[] = [];
  const take = restTaker({
    reportRemaining: (key) => {
      reported.push(key);
      return Promise.resolve({ remaining: 0 });
    },
  });
  return { reported, take: (key: string) => take(DENIED, { key, hits: 5 }) };
}

test('the denials of a key in a tick share a report, and each says that nothing is left', async () => {
  const { reported, take } = watchedReports();
  const decisions = await Promise.all([take('a'), take('a'), take('b')]);

  expect(reported).toEqual(['a', 'b']);
  expect(decisions).toEqual(
    [1, 2, 3].map(() => ({ ...DENIED, quota: { limits: [{ ...LIMIT, remaining: 0 }] } })),
  );
});

test('a denial of a later tick has a report of its own: another window may have begun', async () => {
  const { reported, take } = watchedReports();
  await take('a');
  await nextTick();
  await take('a');

  expect(reported).toEqual(['a', 'a']);
});

/** Slices with ticks that the test ends, and a clock that calls move forward. */
function manualSlices(millisPerElement = 1 / 256) {
  const due: (() => void)[] = [];
  let now = 0;
  const slices = new Slices({ next: (callback) => void due.push(callback) }, () => now);
  let dealt: string[] = [];
  /** Begins a call with `elements` elements, which uses every slice that it gets. */
  const begin = async (name: string, elements: number, owner = name): Promise<void> => {
    const request = { owner };
    for (let left = elements; left > 0;) {
      const count = await slices.next(request, left);
      dealt.push(...Array<string>(count).fill(name));
      now += count * millisPerElement;
      left -= count;
    }
  };
  /** Ends the tick. @returns the call of each element that was handled in it */
  const endTick = async (): Promise<string[]> => {
    await new Promise((resolve) => setImmediate(resolve));
    for (const callback of due.splice(0)) callback();
    const names = dealt;
    dealt = [];
    return names;
  };
  return { begin, endTick, isIdle: () => due.length === 0 };
}

test('a single call gets its slices at once', async () => {
  const { begin, endTick, isIdle } = manualSlices();
  await begin('a', 50);

  expect(await endTick()).toHaveLength(50);
  await endTick();
  expect(isIdle()).toBe(true);
});

test.each([
  [1 / 256, 256],
  [1 / 16, 16],
  // The number of elements between two looks at the clock.
  [20, 4],
])('at %f ms for each element a tick handles %i, of any number of calls', async (millis, most) => {
  const { begin, endTick, isIdle } = manualSlices(millis);
  for (const name of ['a', 'b', 'c', 'd']) void begin(name, 200);

  const counts: number[] = [];
  while (!isIdle()) counts.push((await endTick()).length);
  expect(counts.reduce((sum, count) => sum + count)).toBe(800);
  // The first tick has one more slice for each call, since the calls begin together.
  expect(counts[0]).toBeLessThanOrEqual(most + 4);
  expect(Math.max(...counts.slice(1))).toBe(most);
});

test('calls share a tick', async () => {
  const { begin, endTick } = manualSlices();
  void begin('a', 1000);
  void begin('b', 1000);
  void begin('c', 10);
  await endTick();

  const names = await endTick();
  const [a, b] = ['a', 'b'].map((name) => names.filter((each) => each === name).length);
  expect([a, b]).toEqual([128, 128]);
});

test('a new call waits behind the calls that already wait', async () => {
  const { begin, endTick } = manualSlices(20);
  void begin('a', 12);
  void begin('b', 12);
  await endTick();
  void begin('c', 4);

  const first: (string | undefined)[] = [];
  for (let tick = 0; tick < 4; tick += 1) first.push((await endTick())[0]);
  expect(first).toEqual(['a', 'b', 'a', 'c']);
});

test('callers are served one after the other, however many requests one of them has', async () => {
  const { begin, endTick } = manualSlices(20);
  for (const name of ['a1', 'a2', 'a3']) void begin(name, 8, 'a');
  void begin('b', 8);

  const first: (string | undefined)[] = [];
  for (let tick = 0; tick < 7; tick += 1) first.push((await endTick())[0]);
  expect(first).toEqual(['a1', 'b', 'a3', 'b', 'a1', 'a2', 'a3']);
});
