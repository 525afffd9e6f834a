import { TimeoutError } from '../../../../src/common/deadline.js';
import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { type Call, CallGuard } from '../../../../src/redis/availability/call-guard.js';
import { FakeStore } from '../../../support/fake-store.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { type RecordedLog, recordLog } from '../../../support/recorded-log.js';
import { FAILURES } from '../../../support/store-failures.js';
import { unobserved } from '../../../support/unguarded.js';
import { until } from '../../../support/until.js';

/** A call that the store never answers. */
const NO_ANSWER = Symbol('no answer');

/** A call whose attempts end with the given outcomes. */
interface ScriptedCall extends Call<string> {
  /** The number of each attempt. */
  readonly attempts: readonly number[];
}

/**
 * @param outcomes of its attempts, in order: an error, {@link NO_ANSWER} or a reply. Further attempts end
 * like the last.
 */
function callThat(
  outcomes: readonly (Error | string | typeof NO_ANSWER)[],
  more: Partial<Call<string>> = {},
): ScriptedCall {
  const attempts: number[] = [];
  return {
    script: 'check',
    operation: () => 'FCALL',
    name: 'a:key',
    size: 1,
    isWrite: true,
    isRepeatable: true,
    attempts,
    send: (attempt) => {
      attempts.push(attempt);
      const outcome = outcomes[Math.min(attempts.length, outcomes.length) - 1]!;
      if (outcome instanceof Error) return Promise.reject(outcome);
      if (outcome === NO_ANSWER) return new Promise(() => undefined);
      return Promise.resolve(outcome);
    },
    ...more,
  };
}

/** The error that the call fails with. */
function failureIn(guard: CallGuard, call: ScriptedCall): Promise<unknown> {
  return guard.run(call).then(
    (reply) => Promise.reject(new Error(`answered: ${reply}`)),
    (error: unknown) => error,
  );
}

describe('the guard of calls', () => {
  const { refused, unknown, moving, fault } = FAILURES;

  let store: FakeStore;
  let log: RecordedLog;
  let clock: ManualClock;
  /** The script and the outcome of each call that was observed. */
  let observed: unknown[][];
  let guard: CallGuard;
  beforeEach(() => {
    store = new FakeStore();
    log = recordLog();
    clock = new ManualClock(0);
    observed = [];
    guard = create(60_000);
  });

  function create(timeoutMillis: number): CallGuard {
    const createdAt = performance.now();
    return new CallGuard({
      connections: store.connections,
      timeoutMillis,
      clock,
      logger: log.logger,
      observer: {
        ...unobserved,
        called: (script, seconds, outcome) => {
          expect(seconds).toBeGreaterThanOrEqual(0);
          expect(seconds).toBeLessThanOrEqual((performance.now() - createdAt) / 1000);
          observed.push([script, outcome]);
        },
      },
    });
  }

  const failureOf = (call: ScriptedCall): Promise<unknown> => failureIn(guard, call);

  async function fail(times: number, call: () => ScriptedCall): Promise<void> {
    for (let i = 0; i < times; i += 1) await failureOf(call());
  }

  const isOpen = (): boolean => guard.breakers.of('a:key').isOpen;

  async function expectNotAsked(call: ScriptedCall, why: string): Promise<void> {
    const error = await failureOf(call);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).toMatchObject({
      mayHaveRun: false,
      cause: { message: `the store was not asked: ${why}` },
    });
    expect(call.attempts).toEqual([]);
  }

  test('a call without an answer in time fails, and has ended when its late answer comes', async () => {
    guard = create(5);
    let answerLate!: (reply: string) => void;
    const late = new Promise<string>((resolve) => (answerLate = resolve));
    const error = (await failureOf(callThat([], { send: () => late }))) as StoreUnavailableError;
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error.cause).toBeInstanceOf(TimeoutError);
    let hasEnded = false;
    const { ended } = error;
    void ended!.then(() => (hasEnded = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(hasEnded).toBe(false);
    answerLate('reply');
    await ended;
  });

  test('the error of an earlier attempt is not the cause if the last attempt is not answered', async () => {
    // Long enough for a second attempt.
    guard = create(60);
    const error = await failureOf(callThat([moving, NO_ANSWER]));
    expect((error as Error).cause).toBeInstanceOf(TimeoutError);
  });

  describe('failures of the store are logged', () => {
    const failures = (): unknown[] =>
      log.lines.flatMap((line) => (line.msg === 'store call failed' ? [line.failures] : []));

    test('at once for the first, and together for the rest of a second, by script, with the last reason', async () => {
      await fail(2, () => callThat([refused]));
      await failureOf(callThat([unknown], { script: 'settle', isRepeatable: false }));
      const first = { level: 'warn', msg: 'store call failed', failures: { check: 1 } };
      expect(log.lines[0]).toMatchObject({ ...first, reason: refused.message });
      expect(failures()).toEqual([{ check: 1 }]);
      await clock.advance(1000);
      expect(failures()).toEqual([{ check: 1 }, { check: 1, settle: 1 }]);
      const { reason } = log.lines.findLast((line) => 'failures' in line)!;
      expect(reason).toBe('the connection to Redis was lost before the reply');
    });

    test('when the limiter is closed for the last ones, and no timer is left', async () => {
      await fail(2, () => callThat([refused]));
      guard.close();
      expect(failures()).toEqual([{ check: 1 }, { check: 1 }]);
      await clock.advance(100_000);
      expect(failures()).toHaveLength(2);
    });
  });

  describe('the breaker of a shard', () => {
    const DOWN = 'it is known to be down';

    test('opens after three failures in a row, and calls fail at once without being sent', async () => {
      await fail(2, () => callThat([refused]));
      expect(isOpen()).toBe(false);
      await fail(1, () => callThat([refused]));
      expect(isOpen()).toBe(true);
      for (let i = 0; i < 10; i += 1) await expectNotAsked(callThat(['reply']), DOWN);
    });

    test('opens after calls that may have run, and after calls that did not run', async () => {
      await fail(1, () => callThat([refused]));
      await fail(1, () => callThat([unknown], { isRepeatable: false }));
      await fail(1, () => callThat([unknown, refused]));
      expect(isOpen()).toBe(true);
    });

    test('opens before the first call if connections have been refused for as long as a call may take', async () => {
      guard = create(500);
      store.lastError = new Error('connect ECONNREFUSED 127.0.0.1:6379');
      store.refusedMillis = 499;
      expect(await guard.run(callThat(['reply']))).toBe('reply');
      store.refusedMillis = 500;
      await expectNotAsked(callThat(['reply']), DOWN);
      expect(log.lines).toMatchObject([
        { msg: 'store is down; not asked until it is up again', reason: store.lastError.message },
      ]);
    });

    test('opens if nothing is answered, and has the connection examined', async () => {
      guard = create(5);
      await fail(3, () => callThat([NO_ANSWER]));
      expect(isOpen()).toBe(true);
      expect([store.suspected, store.renewed]).toEqual([['a'], []]);
    });

    test('opens if there is no connection, and does nothing else', async () => {
      guard = create(5);
      await fail(3, () => callThat([FAILURES.notSent]));
      expect(isOpen()).toBe(true);
      expect(store.suspected).toEqual([]);
    });

    test('opens if only reads succeed', async () => {
      await fail(2, () => callThat([refused]));
      await guard.run(callThat(['reply'], { isWrite: false }));
      await fail(1, () => callThat([refused]));
      expect(isOpen()).toBe(true);
    });

    test.each([
      ['faults, which are errors of Sluice', fault],
      ['slots that move', moving],
      ['a store that has no room for new keys', FAILURES.full],
    ])('ignores %s', async (_what, failure) => {
      guard = create(5);
      await fail(10, () => callThat([failure]));
      expect(isOpen()).toBe(false);
    });
  });

  describe('the number of calls under way', () => {
    const TOO_MUCH = 'too much is under way';

    const ends: (() => Promise<void>)[] = [];
    afterEach(async () => {
      await Promise.all(ends.splice(0).map((end) => end()));
    });

    /** Starts a call of that size. The end of the test also ends it. @returns a function that ends it */
    function startCall(size: number): (error?: Error) => Promise<void> {
      let settle!: (error?: Error) => void;
      const answer = new Promise<string>((resolve, reject) => {
        settle = (error) => {
          if (error) reject(error);
          else resolve('reply');
        };
      });
      const ended = guard.run(callThat([], { size, send: () => answer })).catch(() => undefined);
      const end = async (error?: Error): Promise<void> => {
        settle(error);
        await ended;
      };
      ends.push(end);
      return end;
    }

    test('is at most 20,000', async () => {
      startCall(19_999);
      const endLast = startCall(1);
      await expectNotAsked(callThat(['reply'], { size: 1 }), TOO_MUCH);
      await endLast();
      expect(await guard.run(callThat(['reply'], { size: 1 }))).toBe('reply');
      await expectNotAsked(callThat(['reply'], { size: 2 }), TOO_MUCH);
    });

    test('includes calls that have missed their deadline, until their replies come', async () => {
      guard = create(5);
      const end = startCall(20_000);
      await until(() => observed.length === 1);
      await expectNotAsked(callThat(['reply']), TOO_MUCH);
      await end();
      expect(await guard.run(callThat(['reply'], { size: 20_000 }))).toBe('reply');
    });

    test('is counted by shard: a shard without replies does not keep others from being asked', async () => {
      startCall(20_000);
      await expectNotAsked(callThat(['reply']), TOO_MUCH);
      expect(await guard.run(callThat(['reply'], { name: 'b:key' }))).toBe('reply');
    });

    test.each([undefined, refused, fault])(
      'does not include a call that has ended: %s',
      async (error) => {
        await startCall(20_000)(error);
        expect(await guard.run(callThat(['reply'], { size: 20_000 }))).toBe('reply');
      },
    );

    test('does not make the store count as down when it is too high', async () => {
      startCall(20_000);
      for (let i = 0; i < 10; i += 1) await expectNotAsked(callThat(['reply']), TOO_MUCH);
      expect([isOpen(), observed, log.lines]).toEqual([false, [], []]);
    });
  });

  describe('the observer is told of each call once', () => {
    test.each<[outcome: string, call: ScriptedCall]>([
      ['ok', callThat(['reply'], { script: 'settle' })],
      ['ok', callThat([FAILURES.passing, unknown, 'reply'])],
      ['not_run', callThat([refused])],
      ['not_run', callThat([moving, refused])],
      ['unknown', callThat([unknown], { isRepeatable: false })],
      ['unknown', callThat([unknown, refused])],
      ['fault', callThat([fault])],
      ['fault', callThat([unknown, fault])],
    ])('%s', async (outcome, call) => {
      await guard.run(call).catch(() => undefined);
      expect(observed).toEqual([[call.script, outcome]]);
    });

    test('but not of commands, which are not scripts', async () => {
      await guard.run(callThat(['reply'], { operation: undefined }));
      await failureOf(callThat([refused], { operation: undefined }));
      expect(observed).toEqual([]);
    });
  });
});

describe('retries', () => {
  const { passing, notSent, demoted, moving, refused, unknown, fault } = FAILURES;
  const ALL_KINDS = Object.entries(FAILURES);

  let store: FakeStore;
  let clock: ManualClock;
  let guard: CallGuard;
  beforeEach(() => {
    store = new FakeStore();
    clock = new ManualClock(1_000_000);
    guard = create(60_000);
  });

  function create(timeoutMillis: number, { connections } = store): CallGuard {
    return new CallGuard({
      connections,
      timeoutMillis,
      clock,
      logger: recordLog('silent').logger,
      observer: unobserved,
    });
  }

  const failureOf = (call: ScriptedCall): Promise<unknown> => failureIn(guard, call);

  /** Resolves after the time in which a call that ended earlier would have been sent again. */
  async function longestBackoff(): Promise<void> {
    const call = callThat([...Array.from({ length: 4 }, () => passing), 'reply']);
    await create(60_000, new FakeStore()).run(call);
  }

  describe('a call is sent again', () => {
    test.each([
      ['passing', passing],
      ['passing, without a connection', notSent],
      ['passing, at a former primary', demoted],
      ['moving', moving],
      ['unknown', unknown],
    ])('after a failure that is %s', async (_kind, failure) => {
      const call = callThat([failure, failure, 'reply']);
      expect(await guard.run(call)).toBe('reply');
      expect(call.attempts).toEqual([1, 2, 3]);
    });

    test.each([
      ['passing', passing],
      ['moving', moving],
    ])('if it did not run, even though it must not run twice: %s', async (_kind, failure) => {
      const call = callThat([failure, failure, 'reply'], { isRepeatable: false });
      expect(await guard.run(call)).toBe('reply');
      expect(call.attempts).toEqual([1, 2, 3]);
    });

    test('until its time is up, and no longer', async () => {
      guard = create(20);
      const call = callThat([passing]);
      expect(await failureOf(call)).toMatchObject({ cause: passing });
      const { length } = call.attempts;
      expect(length).toBeGreaterThan(1);
      await longestBackoff();
      expect(call.attempts).toHaveLength(length);
    });
  });

  describe('a call is not sent again', () => {
    test('if Redis refused it', async () => {
      const call = callThat([refused, 'reply']);
      expect(await failureOf(call)).toMatchObject({
        name: 'StoreUnavailableError',
        cause: refused,
      });
      await longestBackoff();
      expect(call.attempts).toEqual([1]);
    });

    test('if it was wrong, and its error is passed on unchanged', async () => {
      const call = callThat([fault, 'reply']);
      expect(await failureOf(call)).toBe(fault);
      await longestBackoff();
      expect(call.attempts).toEqual([1]);
    });

    test('if it may have run, and must not run twice', async () => {
      const call = callThat([passing, unknown, 'reply'], { isRepeatable: false });
      expect(await failureOf(call)).toMatchObject({ cause: unknown });
      await longestBackoff();
      expect(call.attempts).toEqual([1, 2]);
    });

    test.each(ALL_KINDS)('if it fails after its time is up: %s', async (_kind, failure) => {
      guard = create(5);
      let fail!: (error: Error) => void;
      const answer = new Promise<string>((_resolve, reject) => (fail = reject));
      let sent = 0;
      const call = callThat([], {
        send: () => {
          sent += 1;
          return answer;
        },
      });
      await failureOf(call);
      fail(failure);
      await longestBackoff();
      expect(sent).toBe(1);
      expect([store.renewed, store.refreshes]).toEqual([[], 0]);
    });
  });

  describe('a call that fails may have run', () => {
    const repeatable = (...outcomes: (Error | typeof NO_ANSWER)[]): ScriptedCall =>
      callThat(outcomes);
    const once = (...outcomes: (Error | typeof NO_ANSWER)[]): ScriptedCall =>
      callThat(outcomes, { isRepeatable: false });

    test.each<[what: string, expected: boolean, call: ScriptedCall]>([
      ['refused', false, repeatable(refused)],
      ['refused, after it did not run', false, repeatable(passing, notSent, moving, refused)],
      ['refused, after unknown', true, repeatable(unknown, refused)],
      ['refused, after unknown and not run', true, repeatable(unknown, passing, refused)],
      ['refused by a full store, after unknown', true, repeatable(unknown, FAILURES.full)],
      ['lost', true, once(unknown)],
      ['lost, after it did not run', true, once(passing, moving, unknown)],
      ['refused, and must not run twice', false, once(passing, refused)],
    ])('%s: %s', async (_what, expected, call) => {
      const error = await failureOf(call);
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(error).toMatchObject({ mayHaveRun: expected });
    });

    test.each<[what: string, expected: boolean, call: ScriptedCall]>([
      ['no answer', true, repeatable(NO_ANSWER)],
      ['no answer, after it did not run', true, repeatable(passing, NO_ANSWER)],
      ['no answer, after unknown', true, repeatable(unknown, NO_ANSWER)],
      ['no answer to a call that must not run twice', true, once(NO_ANSWER)],
      ['no connection', false, repeatable(notSent)],
      ['a slot that moves', false, repeatable(moving)],
      ['no connection for a call that must not run twice', false, once(notSent)],
      ['lost again and again', true, repeatable(unknown)],
      ['no connection any more', true, repeatable(unknown, notSent)],
    ])('when time is up: %s: %s', async (_what, expected, call) => {
      // Long enough for a second attempt.
      guard = create(60);
      const error = await failureOf(call);
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(error).toMatchObject({ mayHaveRun: expected });
    });
  });

  describe('before a call is sent again', () => {
    test.each([
      ['passing', passing, 1],
      ['unknown', unknown, 1],
      ['moving', moving, 0],
      ['demoted', demoted, 0],
    ])('the topology is looked up if that may help: %s', async (_kind, failure, refreshes) => {
      await guard.run(callThat([failure, 'reply']));
      expect(store.refreshes).toBe(refreshes);
    });

    test('the connection to a former primary is renewed, but not by every call', async () => {
      await Promise.all([
        guard.run(callThat([demoted, demoted, demoted, 'reply'])),
        guard.run(callThat([demoted, 'reply'])),
      ]);
      expect(store.renewed).toEqual(['a']);
      await clock.advance(249);
      await guard.run(callThat([demoted, 'reply']));
      expect(store.renewed).toEqual(['a']);
      await clock.advance(1);
      await guard.run(callThat([demoted, 'reply']));
      expect(store.renewed).toEqual(['a', 'a']);
    });

    test('the connection is kept after failures that are not about it', async () => {
      await guard.run(callThat([passing, notSent, moving, unknown, 'reply']));
      expect(store.renewed).toEqual([]);
    });
  });
});
