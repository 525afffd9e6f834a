import type { CheckRequest } from '../../../src/limiter/limiter.js';
import { CheckBatcher } from '../../../src/redis/check-batcher.js';
import { KeyNaming } from '../../../src/redis/key-names.js';
import type {
  BatchedCheck,
  CheckReply,
  Overrides,
  Scripts,
  VERDICT,
} from '../../../src/redis/scripts.js';

const APPROVED: (typeof VERDICT)['approved'] = 1;
const naming = new KeyNaming('sluice:');

interface Call {
  readonly state: string;
  readonly overrides: Overrides;
  readonly checks: readonly BatchedCheck[];
}

let calls: Call[];
/** What a call is answered with; the number of the check in it is the window's end. */
let answer: (call: Call) => Promise<CheckReply[]>;
let batcher: CheckBatcher;
beforeEach(() => {
  calls = [];
  answer = ({ checks }) =>
    Promise.resolve(checks.map((_check, i) => ({ verdict: APPROVED, millisToWindowEnd: i })));
  const check: Scripts['check'] = (names, overrides, checks) => {
    const call = { state: names.state, overrides, checks: [...checks] };
    calls.push(call);
    return answer(call);
  };
  batcher = new CheckBatcher({ check } as Partial<Scripts> as Scripts, naming);
});

const send = (
  requestId: string,
  key: string,
  more: Partial<CheckRequest> = {},
): Promise<CheckReply> => batcher.send({ key, canWait: false, ...more }, requestId);

const idsOf = (call: Call): string[] => call.checks.map(({ requestId }) => requestId);

const outcomesOf = async (replies: Promise<CheckReply>[]): Promise<string[]> =>
  (await Promise.allSettled(replies)).map(({ status }) => status);

test('checks of a key in one turn of the event loop share a call', async () => {
  const replies = await Promise.all([
    send('a', 'k'),
    send('b', 'k', { canWait: true }),
    Promise.resolve().then(() => send('c', 'k')),
  ]);
  expect(calls).toEqual([
    {
      state: 'sluice:{k}',
      overrides: { maxRequests: undefined, maxRequestsInQueue: undefined },
      checks: [
        { requestId: 'a', canWait: false },
        { requestId: 'b', canWait: true },
        { requestId: 'c', canWait: false },
      ],
    },
  ]);
  expect(replies.map(({ millisToWindowEnd }) => millisToWindowEnd)).toEqual([0, 1, 2]);
});

test('nothing is sent before the turn ends', async () => {
  const reply = send('a', 'k');
  await Promise.resolve();
  expect(calls).toEqual([]);
  await reply;
  expect(calls).toHaveLength(1);
});

test('checks of later turns get calls of their own', async () => {
  await send('a', 'k');
  await send('b', 'k');
  expect(calls.map(idsOf)).toEqual([['a'], ['b']]);
});

test('a call that is on its way holds up no later one', async () => {
  let finishFirst: (replies: CheckReply[]) => void = () => undefined;
  const answerAtOnce = answer;
  answer = () => new Promise((resolve) => (finishFirst = resolve));
  const first = send('a', 'k');
  await new Promise((resolve) => setImmediate(resolve));
  answer = answerAtOnce;
  await send('b', 'k');
  expect(calls.map(idsOf)).toEqual([['a'], ['b']]);
  finishFirst([{ verdict: APPROVED, millisToWindowEnd: 9 }]);
  expect(await first).toEqual({ verdict: APPROVED, millisToWindowEnd: 9 });
});

test('each key gets a call of its own', async () => {
  await Promise.all([send('a', 'k'), send('b', 'l'), send('c', 'k')]);
  expect(calls.map((call) => [call.state, idsOf(call)])).toEqual([
    ['sluice:{k}', ['a', 'c']],
    ['sluice:{l}', ['b']],
  ]);
});

test('checks with the same overrides share a call', async () => {
  const overrides = { maxRequests: 5, maxRequestsInQueue: 0 };
  await Promise.all([send('a', 'k', overrides), send('b', 'k', overrides)]);
  expect(calls.map(idsOf)).toEqual([['a', 'b']]);
  expect(calls[0]!.overrides).toEqual(overrides);
});

test('checks with different overrides go in separate calls, in the order they came', async () => {
  await Promise.all([
    send('a', 'k'),
    send('b', 'k', { maxRequests: 5 }),
    send('c', 'k'),
    send('d', 'k', { maxRequestsInQueue: 5 }),
    send('e', 'k', { maxRequestsInQueue: 0 }),
    send('f', 'k', { maxRequestsInQueue: 0 }),
  ]);
  expect(calls.map(idsOf)).toEqual([['a'], ['b'], ['c'], ['d'], ['e', 'f']]);
  expect(calls.map(({ overrides }) => overrides)).toEqual([
    { maxRequests: undefined, maxRequestsInQueue: undefined },
    { maxRequests: 5, maxRequestsInQueue: undefined },
    { maxRequests: undefined, maxRequestsInQueue: undefined },
    { maxRequests: undefined, maxRequestsInQueue: 5 },
    { maxRequests: undefined, maxRequestsInQueue: 0 },
  ]);
});

test('more than 500 checks are split, in the order they came', async () => {
  const ids = Array.from({ length: 1001 }, (_, i) => String(i));
  const replies = await Promise.all(ids.map((id) => send(id, 'k')));
  expect(calls.map(({ checks }) => checks.length)).toEqual([500, 500, 1]);
  expect(calls.flatMap(idsOf)).toEqual(ids);
  expect(replies[499]!.millisToWindowEnd).toBe(499);
  expect(replies[500]!.millisToWindowEnd).toBe(0);
});

test('a call that fails rejects its own checks only', async () => {
  const failure = new Error('lost');
  const answerAtOnce = answer;
  answer = (call) =>
    call.overrides.maxRequests === 5 ? Promise.reject(failure) : answerAtOnce(call);
  const failing = [send('b', 'k', { maxRequests: 5 }), send('c', 'k', { maxRequests: 5 })];
  const others = [send('a', 'k'), send('d', 'l')];
  expect(await Promise.allSettled(failing)).toEqual([
    { status: 'rejected', reason: failure },
    { status: 'rejected', reason: failure },
  ]);
  expect(await outcomesOf(others)).toEqual(['fulfilled', 'fulfilled']);
  expect((await send('e', 'k')).verdict).toBe(APPROVED);
});

test('a check that the reply leaves out is rejected', async () => {
  answer = () => Promise.resolve([{ verdict: APPROVED, millisToWindowEnd: 1 }]);
  const [first, second] = [send('a', 'k'), send('b', 'k')];
  await expect(first).resolves.toMatchObject({ verdict: APPROVED });
  await expect(second).rejects.toThrow('check.lua left check 1 of 2 unanswered');
});
