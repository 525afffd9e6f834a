import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { CallGuard } from '../../../../src/redis/availability/call-guard.js';
import { FakeStore } from '../../../support/fake-store.js';
import {
  callThat,
  failureIn,
  NO_ANSWER,
  type ScriptedCall,
} from '../../../support/guarded-call.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog } from '../../../support/recorded-log.js';
import { FAILURES } from '../../../support/store-failures.js';
import { unobserved } from '../../../support/unguarded.js';

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

  test('after failures of several kinds', async () => {
    const call = callThat([notSent, unknown, moving, demoted, 'reply']);
    expect(await guard.run(call)).toBe('reply');
    expect(call.attempts).toEqual([1, 2, 3, 4, 5]);
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
    expect(await failureOf(call)).toMatchObject({ name: 'StoreUnavailableError', cause: refused });
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
