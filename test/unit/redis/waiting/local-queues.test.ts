import { CallerPresence, nextClaimNumber } from '../../../../src/limiter/request.js';
import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import type { CheckRequest, Decision, RequestTrace } from '../../../../src/limiter/limiter.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { LocalQueues } from '../../../../src/redis/waiting/local-queues.js';
import { eventLoop } from '../../../../src/common/ticks.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog } from '../../../support/recorded-log.js';
import { ScriptedMessages } from '../../../support/waiting/scripted-messages.js';
import { ScriptedMutex } from '../../../support/waiting/scripted-mutex.js';
import { quiet, ScriptedStore } from '../../../support/waiting/scripted-store.js';
import { unobserved } from '../../../support/unguarded.js';
import { quotaOf } from '../../../support/quota.js';
import { keyLimits } from '../../../support/limits.js';

const APPROVED = 1;
const DENIED = 0;
const QUEUE_NEWS = { limits: '1000:1:100', wakeNumber: 0, at: 0 };
const MAY_HAVE_RUN = new StoreUnavailableError({ mayHaveRun: true });

/** A check on its way to the store, which the test answers. */
interface SentCheck {
  readonly request: CheckRequest;
  readonly requestId: string;
  /** @param verdict or a ticket */
  answer(verdict: number): Promise<void>;
  fail(error: Error): Promise<void>;
}

const naming = new KeyNaming('');

let sent: SentCheck[];
let store: ScriptedStore;
let messages: ScriptedMessages;
let mutexes: [name: string, candidate: string, mutex: ScriptedMutex][];
let unavailable: Set<string>;
let clock: ManualClock;
let room: LocalQueues;
beforeEach(() => {
  sent = [];
  store = new ScriptedStore();
  messages = new ScriptedMessages();
  mutexes = [];
  unavailable = new Set();
  clock = new ManualClock(0);
  room = openRoom(3);
});

function openRoom(maxWaiters: number): LocalQueues {
  return new LocalQueues({
    replicaId: 'replica',
    leaseMillis: 30_000,
    limitsOf: () => keyLimits({ windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 }),
    maxWaiters,
    checks: {
      check: (request, requestId, onReply, onFailed) => {
        sent.push({
          request,
          requestId,
          answer: (verdict) => {
            // All checks of a call have these news if one of them has a ticket.
            onReply({ verdict, quota: quotaOf(1000), millisToRoom: 1000, queueState: QUEUE_NEWS });
            return quiet();
          },
          fail: (error) => {
            onFailed(error);
            return quiet();
          },
        });
      },
    },
    store,
    messages,
    createMutex: (name, candidate) => {
      const mutex = new ScriptedMutex();
      mutexes.push([name, candidate, mutex]);
      return mutex;
    },
    naming,
    slotOf: () => 0,
    latestTime: () => undefined,
    isAvailable: (name) => !unavailable.has(name),
    observer: unobserved,
    clock,
    ticks: eventLoop,
    random: () => 0.5,
    createRequestId: () => `id ${sent.length}`,
    nextClaimNumber,
    logger: recordLog('silent').logger,
  });
}

/** A test that awaits the decision gets the error. */
function check(key = 'k', caller?: CallerPresence): Promise<Decision> {
  const decision = room.checkOrWait({ key, canWait: true }, caller);
  decision.catch(() => undefined);
  return decision;
}

/** A check that has a ticket. */
async function wait(
  ticket: number,
  key = 'k',
  caller?: CallerPresence,
): Promise<{ readonly decision: Promise<Decision> }> {
  const decision = check(key, caller);
  await sent.at(-1)!.answer(ticket);
  return { decision };
}

async function advance(millis: number): Promise<void> {
  await quiet();
  await clock.advance(millis, { afterTimers: quiet });
}

describe('a check', () => {
  test('tells its trace that it waits only if it has a ticket', async () => {
    let queued = 0;
    const trace = { queued: () => (queued += 1) } as unknown as RequestTrace;
    for (const verdict of [APPROVED, DENIED, 10]) {
      void room.checkOrWait({ key: 'k', canWait: true, trace });
      await sent.at(-1)!.answer(verdict);
    }
    expect(queued).toBe(1);
  });

  test.each([
    ['may have run', MAY_HAVE_RUN, [['id 0']]],
    ['did not run', new StoreUnavailableError(), []],
    ['has a fault', new Error('a fault'), []],
  ])(
    'fails with the error of its call, and is withdrawn if necessary: the call %s',
    async (_w, error, withdrawn) => {
      const decided = check();
      await sent[0]!.fail(error);
      await expect(decided).rejects.toBe(error);
      await quiet();
      expect([room.waiting, store.withdrawn]).toEqual([0, withdrawn]);
    },
  );

  test('is withdrawn again when its call ends, if the call may still run after it has failed', async () => {
    let end!: (value?: unknown) => void;
    const ended = new Promise((resolve) => (end = resolve));
    const decided = check();
    await sent[0]!.fail(new StoreUnavailableError({ mayHaveRun: true, ended }));
    await expect(decided).rejects.toBeInstanceOf(StoreUnavailableError);
    await quiet();
    expect(store.withdrawn).toEqual([['id 0']]);
    end();
    await ended;
    await quiet();
    expect(store.withdrawn).toEqual([['id 0'], ['id 0']]);
  });

  test('with a kept place is withdrawn after its time, which begins when its call ends', async () => {
    let end!: (value?: unknown) => void;
    const ended = new Promise((resolve) => (end = resolve));
    const requestId = 'e0f5d5a2-0000-4000-8000-000000000001';
    const decided = room.checkOrWait({ key: 'k', canWait: true, requestId, keepMillis: 1000 });
    await sent[0]!.fail(new StoreUnavailableError({ mayHaveRun: true, ended }));
    await expect(decided).rejects.toBeInstanceOf(StoreUnavailableError);
    await advance(2000);
    expect(store.withdrawn).toEqual([]);
    end();
    await ended;
    await advance(999);
    expect(store.withdrawn).toEqual([]);
    await advance(1);
    expect(store.withdrawn).toEqual([[expect.stringContaining(requestId)]]);
    await advance(1000);
    expect(store.withdrawn).toHaveLength(1);
  });

  test('is withdrawn after any answer but a denial if its caller disconnects', async () => {
    for (const end of [
      (one: SentCheck) => one.answer(APPROVED),
      (one: SentCheck) => one.answer(10),
      (one: SentCheck) => one.fail(MAY_HAVE_RUN),
    ]) {
      const caller = new CallerPresence();
      const decided = check('k', caller);
      caller.disconnect();
      expect(await decided).toEqual({ outcome: 'withdrawn' });
      expect([store.withdrawn, room.waiting]).toEqual([[], 1]);
      await end(sent.at(-1)!);
      await quiet();
      expect(store.withdrawn.splice(0)).toEqual([[sent.at(-1)!.requestId]]);
      expect(room.waiting).toBe(0);
    }
  });

  test('is not withdrawn if its caller disconnects but it is denied', async () => {
    const caller = new CallerPresence();
    void check('k', caller);
    caller.disconnect();
    await sent[0]!.answer(DENIED);
    await quiet();
    expect([store.withdrawn, room.waiting]).toEqual([[], 0]);
  });
});

describe('keys', () => {
  test('have their own queues and candidates', async () => {
    await wait(10, 'k');
    await wait(20, 'l');
    await wait(30, 'k');
    expect([...messages.channels]).toEqual(['{k}:wake', '{l}:wake']);
    expect(mutexes.map(([name, candidate]) => [name, candidate])).toEqual([
      ['{k}:leader', 'replica#1'],
      ['{l}:leader', 'replica#2'],
    ]);
    expect([room.known('k'), room.known('l'), room.known('m')]).toMatchObject([
      { lowestTicket: 10 },
      { lowestTicket: 20 },
      undefined,
    ] as object[]);
  });

  test('that the store can be asked about again are settled, and no others', async () => {
    await wait(10, 'k');
    await wait(20, 'l');
    unavailable.add('{l}');
    room.onStoreAvailable();
    expect(store.calls.map(({ state, ids }) => [state, ids])).toEqual([['{k}', ['id 0']]]);
  });

  test('with failed settles are settled at once when the store is back', async () => {
    await wait(10);
    room.onStoreAvailable();
    await store.last.fail();
    expect(store.calls).toHaveLength(1);
    room.onStoreAvailable();
    expect(store.calls).toHaveLength(2);
  });

  test('are left to their leader for a random grace', async () => {
    await wait(10);
    await advance(1074);
    expect(store.calls).toEqual([]);
    await advance(1);
    expect(store.calls).toHaveLength(1);
  });
});

describe('the maximum number of waiters', () => {
  const hasPlace = (): boolean => room.hasPlaceFor({ key: 'k', canWait: true });

  test('counts all keys', async () => {
    await wait(10, 'k');
    void check('l');
    expect(hasPlace()).toBe(true);
    void check('m');
    expect([hasPlace(), room.waiting]).toEqual([false, 3]);
  });
});

describe('close', () => {
  test('fails all waiters, and leaves nothing in Redis', async () => {
    const { decision } = await wait(10);
    messages.confirm('{k}:wake');
    await quiet();
    const closed = room.close();
    await expect(decision).rejects.toMatchObject({ reason: 'shutting_down' });
    await expect(check()).rejects.toMatchObject({ reason: 'shutting_down' });
    await store.last.answer({ waiting: 1 });
    await closed;
    expect([store.withdrawn, room.waiting, messages.channels.size]).toEqual([[['id 0']], 0, 0]);
    expect(mutexes[0]![2].isAcquired).toBe(false);
    expect(messages.published).toEqual([['{k}:wake', { leaderResigned: true }]]);
  });

  test.each([
    ['a ticket', (one: SentCheck) => one.answer(10)],
    ['an approval', (one: SentCheck) => one.answer(APPROVED)],
    ['a failure', (one: SentCheck) => one.fail(MAY_HAVE_RUN)],
  ])('waits for the answer to a check under way, and withdraws it: %s', async (_what, end) => {
    const decided = check();
    let isClosed = false;
    const closed = room.close().then(() => (isClosed = true));
    await expect(decided).rejects.toMatchObject({ reason: 'shutting_down' });
    await quiet();
    expect(isClosed).toBe(false);
    await end(sent[0]!);
    await closed;
    expect(store.withdrawn).toEqual([['id 0']]);
  });

  test('notifies waiters that were approved before, and releases for callers that have disconnected', async () => {
    room = openRoom(100);
    const callers = Array.from({ length: 40 }, () => new CallerPresence());
    const decisions = [];
    for (const [i, caller] of callers.entries()) {
      decisions.push((await wait(10 + i, 'k', caller)).decision);
    }
    const granted = sent.map(({ requestId }) => requestId);
    messages.wake('{k}:wake', { granted });
    const closed = room.close();
    callers.at(-1)!.disconnect();
    await closed;
    const outcomes = (await Promise.all(decisions)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual([...Array<string>(39).fill('approved'), 'withdrawn']);
    expect(store.withdrawn).toEqual([[granted.at(-1)]]);
  });
});
