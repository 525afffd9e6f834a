import { setImmediate as nextTick } from 'node:timers/promises';

import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import type { CheckOrder, CheckRequest } from '../../../../src/limiter/limiter.js';
import type { Quota } from '../../../../src/limiter/limiter.js';
import { ownLimit } from '../../../../src/limiter/limits.js';
import { quotaIn } from '../../../../src/redis/scripts/limits-codec.js';
import { CheckBatcher } from '../../../../src/redis/checks/check-batcher.js';
import type { CheckReply } from '../../../../src/redis/checks/check-replies.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import {
  type CheckBatch,
  type CheckBatchReply,
  type KnownWaiting,
  VERDICT,
} from '../../../../src/redis/scripts/check-codec.js';
import type { Scripts } from '../../../../src/redis/scripts/scripts.js';
import { eventLoop } from '../../../../src/common/ticks.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { unobserved } from '../../../support/unguarded.js';

const APPROVED = VERDICT.approved;
const naming = new KeyNaming('sluice:');
/** The quota of a key with this maximum, as Redis says it. */
const quotaOf = (maximum: number, used: number, resetMillis = 7): Quota =>
  quotaIn([ownLimit(1000, maximum)], used, resetMillis);

const QUOTA = quotaOf(9, 5);

type Call = readonly CheckBatch[];

let calls: Call[];
/** The reply to a batch. */
let answer: (batch: CheckBatch) => CheckBatchReply | Error;
let answerCall: (call: Call) => Promise<(CheckBatchReply | Error)[]>;
let waiting: Map<string, KnownWaiting>;
let clock: ManualClock;
let batched: number[];
let batcher: CheckBatcher;

/** The verdict of a check is its number in the batch. */
const numbered = ({ checks }: CheckBatch): CheckBatchReply => ({
  millisToRoom: 7,
  quota: QUOTA,
  verdicts: checks.map((_check, i) => i),
});

beforeEach(() => {
  calls = [];
  batched = [];
  answer = numbered;
  answerCall = (call) => Promise.resolve(call.map(answer));
  const check: Scripts['check'] = (batches) => {
    const call = batches.map((batch) => ({
      names: batch.names,
      overrides: batch.overrides,
      waiting: batch.waiting,
      assumption: batch.assumption!,
      arePlain: batch.arePlain,
      checks: batch.checks.map(({ requestId, request: { canWait } }) => ({
        requestId,
        request: { canWait },
      })),
    }));
    calls.push(call);
    return answerCall(call);
  };
  waiting = new Map();
  clock = new ManualClock(0);
  batcher = new CheckBatcher({
    scripts: { check },
    naming,
    observer: { ...unobserved, batched: (checks) => batched.push(checks) },
    ticks: eventLoop,
    clock,
    shardOf: () => 'primary',
    waitingFor: (key) => waiting.get(key),
  });
});

const send = (
  requestId: string,
  key: string,
  more: Partial<CheckRequest> = {},
): Promise<CheckReply> =>
  new Promise((resolve, reject) => {
    batcher.check({ key, canWait: false, ...more }, requestId, resolve, reject);
  });

const idsOf = ({ checks }: CheckBatch): string[] => checks.map(({ requestId }) => requestId);

/** The batches of each call so far: the key, then the ids of the checks. */
const seen = (): string[][] =>
  calls.map((call) => call.map((batch) => [batch.names.key, ...idsOf(batch)].join(' ')));

const ofK = (batches: readonly string[]): string[] =>
  batches.filter((batch) => batch.startsWith('k '));

/** The assumption of the first batch of each call so far. */
const assumptions = (): unknown[] => calls.map(([batch]) => batch!.assumption);

test('the checks of each tick are counted', async () => {
  await Promise.all([send('a', 'k'), send('b', 'k'), send('c', 'another')]);
  await send('d', 'k');
  expect(batched).toEqual([3, 1]);
});

test('checks of a key in one tick of the event loop share a batch', async () => {
  const replies = await Promise.all([
    send('a', 'k'),
    send('b', 'k', { canWait: true }),
    Promise.resolve().then(() => send('c', 'k')),
  ]);
  expect(calls).toEqual([
    [
      {
        names: naming.namesOf('k'),
        overrides: { maxRequests: undefined, maxRequestsInQueue: undefined },
        waiting: undefined,
        assumption: 'unknown',
        arePlain: false,
        checks: [
          { requestId: 'a', request: { canWait: false } },
          { requestId: 'b', request: { canWait: true } },
          { requestId: 'c', request: { canWait: false } },
        ],
      },
    ],
  ]);
  expect(replies.map(({ verdict, quota }) => [verdict, quota.limits[0].resetMillis])).toEqual([
    [0, 7],
    [1, 7],
    [2, 7],
  ]);
});

test('a window is assumed to last as long as Redis said, less the time on the way', async () => {
  const assumption = async (): Promise<string> => {
    calls = [];
    await send('a', 'k');
    return calls[0]![0]!.assumption!;
  };
  answer = () => ({ millisToRoom: 100, quota: quotaOf(9, 5, 100), verdicts: [1] });
  expect(await assumption()).toBe('unknown');
  await clock.advance(50);
  answer = () => ({ millisToRoom: 50, quota: quotaOf(9, 5, 50), verdicts: [1] });
  expect(await assumption()).toBe('inWindow');
  await clock.advance(46);
  answer = () => ({ millisToRoom: 4, quota: quotaOf(9, 5, 4), verdicts: [1] });
  expect(await assumption()).toBe('inWindow');
  await clock.advance(2);
  expect(await assumption()).toBe('newWindow');
});

test('no window is assumed for special checks, or for keys with waiters', async () => {
  const ofTwo = { limits: [QUOTA.limits[0], QUOTA.limits[0]] } as const;
  answer = (batch) => ({
    ...numbered(batch),
    millisToRoom: 100,
    ...(batch.names.key === 'two limits' && { quota: ofTwo }),
  });
  await Promise.all(['k', 'l', 'm', 'n', 'two limits'].map((to) => send('a', to)));
  waiting.set('m', { lowestTicket: 42, requestId: 'w', millisToWindowEnd: 7, limits: '1000:9:5' });
  calls = [];
  await Promise.all([
    send('d', 'k', { canWait: true }),
    send('e', 'l', { maxRequests: 5 }),
    send('f', 'm'),
    send('g', 'l'),
    send('h', 'n', { hits: 2 }),
    send('i', 'two limits'),
  ]);
  expect(calls[0]!.map((batch) => batch.assumption)).toEqual(Array(6).fill('unknown'));
});

test('a key that needed all names gets them until its window ends', async () => {
  const reply = { quota: QUOTA, verdicts: [1] };
  answer = () => ({ ...reply, millisToRoom: 100 - clock.now() });
  await send('a', 'k');
  answer = () => ({ ...reply, millisToRoom: 100 - clock.now(), neededAllNames: true });
  await send('b', 'k');
  answer = () => ({ ...reply, millisToRoom: 100 - clock.now() });
  await clock.advance(50);
  await send('c', 'k');
  await send('d', 'k');
  await clock.advance(48);
  await send('e', 'k');
  expect(assumptions()).toEqual(['unknown', 'inWindow', 'unknown', 'unknown', 'newWindow']);
});

test('batches in a window come before the others of their call', async () => {
  answer = ({ checks }) => ({
    millisToRoom: 100,
    quota: QUOTA,
    verdicts: checks.map(({ requestId }) => Number(requestId)),
  });
  await send('1', 'known');
  calls = [];
  const replies = await Promise.all([send('2', 'new'), send('3', 'known'), send('4', 'newer')]);
  expect(seen()).toEqual([['known 3', 'new 2', 'newer 4']]);
  expect(replies.map(({ verdict }) => verdict)).toEqual([2, 3, 4]);
});

test('a call that is on its way does not delay a later call', async () => {
  let finishFirst: (replies: CheckBatchReply[]) => void = () => undefined;
  const answerAtOnce = answerCall;
  answerCall = () => new Promise((resolve) => (finishFirst = resolve));
  const first = send('a', 'k');
  await nextTick();
  answerCall = answerAtOnce;
  await send('b', 'k');
  expect(calls).toHaveLength(2);
  finishFirst([{ verdicts: [APPROVED], millisToRoom: 9, quota: quotaOf(3, 1, 9) }]);
  expect(await first).toEqual({
    verdict: APPROVED,
    quota: quotaOf(3, 1, 9),
    millisToRoom: 9,
  });
});

test('checks with different overrides are separate batches, in the order of arrival', async () => {
  await Promise.all([
    send('a', 'k'),
    send('b', 'k', { maxRequests: 5 }),
    send('c', 'k'),
    send('d', 'k', { maxRequestsInQueue: 5 }),
    send('e', 'k', { maxRequestsInQueue: 0 }),
    send('f', 'k', { maxRequestsInQueue: 0 }),
  ]);
  expect(seen()).toEqual([['k a', 'k b', 'k c', 'k d', 'k e f']]);
  expect(calls[0]!.map(({ overrides }) => overrides)).toEqual([
    { maxRequests: undefined, maxRequestsInQueue: undefined },
    { maxRequests: 5, maxRequestsInQueue: undefined },
    { maxRequests: undefined, maxRequestsInQueue: undefined },
    { maxRequests: undefined, maxRequestsInQueue: 5 },
    { maxRequests: undefined, maxRequestsInQueue: 0 },
  ]);
});

test('checks with and without hits share a batch, and the quota counts the hits', async () => {
  answer = ({ checks }) => ({
    millisToRoom: 7,
    quota: quotaOf(9, 6),
    verdicts: checks.map((_check, i) => (i === 2 ? 0 : 1)),
  });
  const replies = await Promise.all([
    send('a', 'k'),
    send('b', 'k', { hits: 3 }),
    send('c', 'k', { hits: 7 }),
    send('d', 'k', { hits: 1 }),
  ]);
  expect(seen()).toEqual([['k a b c d']]);
  expect(replies.map(({ quota }) => quota.limits[0].remaining)).toEqual([7, 4, 4, 3]);
});

test('a hundred checks are sent at once, and later checks of the tick in further calls', async () => {
  const ids = Array.from({ length: 201 }, (_, i) => String(i));
  const replies = ids.map((id) => send(id, 'k'));
  expect(calls.map((call) => call[0]!.checks.length)).toEqual([100, 100]);
  const verdicts = (await Promise.all(replies)).map(({ verdict }) => verdict);
  expect(calls.flat().flatMap(idsOf)).toEqual(ids);
  expect([verdicts[0], verdicts[99], verdicts[100], verdicts[200]]).toEqual([0, 99, 0, 0]);
  await nextTick();
  expect(calls).toHaveLength(3);
});

test('a call has at most 16 batches, and the order of a key holds across calls', async () => {
  const others = Array.from({ length: 16 }, (_, i) => `key-${i}`);
  await Promise.all([send('first', 'k'), ...others.map((key) => send('x', key)), send('y', 'k')]);
  expect(calls.map((call) => call.length)).toEqual([16, 2]);
  expect(seen().map(ofK)).toEqual([['k first'], ['k y']]);
});

test('a call that fails rejects its own checks only', async () => {
  const failure = new Error('lost');
  const answerAtOnce = answerCall;
  answerCall = () => Promise.reject(failure);
  const failing = [send('a', 'k'), send('b', 'l')];
  await nextTick();
  answerCall = answerAtOnce;
  const other = send('c', 'k');
  const rejected = { status: 'rejected', reason: failure };
  expect(await Promise.allSettled(failing)).toEqual([rejected, rejected]);
  expect(await other).toMatchObject({ verdict: 0 });
});

test('a batch that fails rejects its own checks only', async () => {
  const failure = new Error('wrong type');
  const answerWell = answer;
  answer = (batch) => (batch.overrides.maxRequests === 5 ? failure : answerWell(batch));
  const replies = await Promise.allSettled([
    send('a', 'k'),
    send('b', 'k', { maxRequests: 5 }),
    send('c', 'k', { maxRequests: 5 }),
    send('d', 'l'),
  ]);
  expect(calls).toHaveLength(1);
  const decided = {
    status: 'fulfilled',
    value: { verdict: 0, quota: QUOTA, millisToRoom: 7 },
  };
  const rejected = { status: 'rejected', reason: failure };
  expect(replies).toEqual([decided, rejected, rejected, decided]);
});

test('a check that the reply leaves out is rejected', async () => {
  answer = () => ({ millisToRoom: 1, quota: quotaOf(1, 1, 1), verdicts: [APPROVED] });
  const [first, second] = [send('a', 'k'), send('b', 'k')];
  await expect(first).resolves.toMatchObject({ verdict: APPROVED });
  await expect(second).rejects.toThrow('check.lua left a check unanswered');
});

test('a held approval that may have lapsed on the way is rejected, as one that has to be withdrawn', async () => {
  answer = (batch) => ({ ...numbered(batch), verdicts: batch.checks.map(() => APPROVED) });
  answerCall = async (call) => {
    await clock.advance(1000);
    return call.map(answer);
  };
  const [lapsed, held, plain] = [
    send('a', 'k', { holdMillis: 1000 }),
    send('b', 'k', { holdMillis: 1001 }),
    send('c', 'k'),
  ];
  const error: unknown = await lapsed.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreUnavailableError);
  expect(error).toMatchObject({ mayHaveRun: true });
  await expect(held).resolves.toMatchObject({ verdict: APPROVED });
  await expect(plain).resolves.toMatchObject({ verdict: APPROVED });
});

describe('ordered checks of one key', () => {
  /** Ends the calls, in their order. */
  let ends: ((error?: Error) => Promise<void>)[];
  let order: CheckOrder;
  beforeEach(() => {
    order = {};
    ends = [];
    answerCall = (call) =>
      new Promise((resolve, reject) => {
        ends.push(async (error) => {
          if (error) reject(error);
          else resolve(call.map(answer));
          await nextTick();
          await nextTick();
        });
      });
  });

  const ordered = (requestId: string, key: string, more: Partial<CheckRequest> = {}) =>
    send(requestId, key, { order, ...more });
  const manyOrdered = (count: number): Promise<CheckReply>[] =>
    Array.from({ length: count }, (_, i) => ordered(String(i), 'k'));
  const sizes = (): number[] => calls.map((call) => call.reduce((n, b) => n + b.checks.length, 0));

  test('wait for the answers to earlier checks, and go in as few calls as possible', async () => {
    const replies = manyOrdered(650);
    await nextTick();
    expect(sizes()).toEqual([100]);
    await ends[0]!();
    expect(sizes()).toEqual([100, 500]);
    await ends[1]!();
    await ends[2]!();
    expect(sizes()).toEqual([100, 500, 50]);
    const ids = Array.from({ length: 650 }, (_, i) => String(i));
    expect(calls.flat().flatMap(idsOf)).toEqual(ids);
    await Promise.all(replies);
    // Nothing is left that would delay the next check.
    void ordered('later', 'k');
    await nextTick();
    expect(sizes()).toEqual([100, 500, 50, 1]);
  });

  test('do not delay other checks of the key, or other keys', async () => {
    void Promise.all(manyOrdered(101));
    void send('alone', 'k');
    void ordered('other', 'l');
    await nextTick();
    expect(seen().slice(1)).toEqual([['k alone', 'l other']]);
  });

  test('do not delay checks of the key with another order', async () => {
    const other = {};
    void Promise.all(manyOrdered(120));
    await nextTick();
    void ordered('first', 'k', { order: other });
    await nextTick();
    void ordered('second', 'k', { order: other });
    await nextTick();
    expect(sizes()).toEqual([100, 1]);
    await ends[1]!();
    expect(seen().at(-1)).toEqual(['k second']);
    await ends[0]!();
    expect(sizes()).toEqual([100, 1, 1, 20]);
  });

  test('wait even if a call is full of other keys', async () => {
    void ordered('first', 'k');
    for (let i = 0; i < 15; i += 1) void ordered('x', `k${i}`);
    void ordered('second', 'k', { maxRequests: 5 });
    await nextTick();
    expect(seen().map(ofK)).toEqual([['k first']]);
    await ends[0]!();
    expect(seen().at(-1)).toEqual(['k second']);
  });

  test('with other overrides follow in the same call, and later checks wait for it', async () => {
    void ordered('a', 'k');
    void ordered('b', 'k', { maxRequests: 5 });
    await nextTick();
    void ordered('c', 'k', { maxRequests: 5 });
    void ordered('d', 'k');
    await nextTick();
    expect(seen()).toEqual([['k a', 'k b']]);
    await ends[0]!();
    expect(seen().slice(1)).toEqual([['k c']]);
    await ends[1]!();
    expect(seen().slice(2)).toEqual([['k d']]);
  });

  test('fail with an earlier call, and are not sent', async () => {
    const replies = Promise.allSettled(manyOrdered(300));
    await nextTick();
    await ends[0]!(new StoreUnavailableError({ mayHaveRun: true }));
    const outcomes = (await replies) as PromiseRejectedResult[];
    const mayHaveRun = outcomes.map(({ reason }) => (reason as StoreUnavailableError).mayHaveRun);
    expect(mayHaveRun).toEqual(Array.from({ length: 300 }, (_, i) => i < 100));
    expect(sizes()).toEqual([100]);
  });

  test('follow a check that failed alone', async () => {
    answer = () => new Error('WRONGTYPE');
    const replies = Promise.allSettled(manyOrdered(150));
    await nextTick();
    await ends[0]!();
    await ends[1]!();
    expect(sizes()).toEqual([100, 50]);
    expect((await replies).every(({ status }) => status === 'rejected')).toBe(true);
  });
});
