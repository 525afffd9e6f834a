import { type Command, type Redis, ReplyError } from 'ioredis';

import { eventLoop } from '../../../../src/common/ticks.js';
import type { Call } from '../../../../src/redis/availability/call-guard.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import type { CheckBatch } from '../../../../src/redis/scripts/check-codec.js';
import { Scripts } from '../../../../src/redis/scripts/scripts.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { SCRIPT_CALLER } from '../../../support/script-caller.js';
import { checkBatchOf } from '../../../support/script-harness.js';
import { recordLog } from '../../../support/recorded-log.js';
import { unguarded } from '../../../support/unguarded.js';
import { keyLimits } from '../../../support/limits.js';

const LIMITS = keyLimits({ windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 3 });
const ErrorReply = ReplyError as new (message: string) => Error;
const ELSEWHERE = 'ERR Script attempted to access a non local key in a cluster node script: x';
const naming = new KeyNaming('p:');

/** The shard of a key is its first letter, and its slot is the key itself. */
const keyIn = (name: string): string => /\{(.*)\}/.exec(name)![1]!;

interface Sent {
  /** The shard that got it; undefined if the client of the cluster routed it. */
  readonly shard: string | undefined;
  readonly keys: string[];
  readonly isSentAgain: boolean;
}

let sent: Sent[];
/** The keys that are not on the shard of their first letter. */
let moved: Set<string>;
/** The errors that the next calls fail with. */
let failing: Error[];
let known: Set<string>;
let clock: ManualClock;
let scripts: Scripts;
beforeEach(() => {
  sent = [];
  moved = new Set();
  failing = [];
  known = new Set(['a', 'b']);
  clock = new ManualClock(0);
  scripts = scriptsWith(unguarded);
});

function scriptsWith(guard: typeof unguarded): Scripts {
  const connections = {
    commands: { sendCommand: send(undefined) } as unknown as Redis,
    isCluster: true,
    slotOf: (name: string) => keyIn(name).codePointAt(1)!,
    shardOf: (name: string) => keyIn(name)[0]!,
    nodeAt: (shard: string) =>
      known.has(shard) ? ({ sendCommand: send(shard) } as unknown as Redis) : undefined,
    primaries: () => new Map(),
  };
  const client = { connections, ticks: eventLoop, clock, logger: recordLog().logger };
  return new Scripts(client, guard, { ...SCRIPT_CALLER, limitsOf: () => LIMITS });
}

/** Answers a call of check: each key is approved, or is elsewhere. */
function send(shard: string | undefined) {
  return ({ args }: Command): Promise<unknown> => {
    const words = args as (string | number)[];
    const names = words.filter((word) => /^p:\{[^}]*\}$/.test(String(word))).map(String);
    const keys = names.map(keyIn);
    const first = 2 + Number(words[1]);
    sent.push({ shard, keys, isSentAgain: Number(words[first + 6]) % 2 === 1 });
    const failure = failing.shift();
    if (failure) return Promise.reject(failure);
    return Promise.resolve(
      keys.flatMap((key): unknown[] =>
        shard !== undefined && moved.has(key) ? [new ErrorReply(ELSEWHERE)] : [1000, 2, 1, 1],
      ),
    );
  };
}

const batch = (key: string): CheckBatch =>
  checkBatchOf(naming.namesOf(key), [{ requestId: `id of ${key}`, canWait: false }]);

const check = async (...keys: string[]): Promise<unknown[]> =>
  (await scripts.check(keys.map(batch))).map((reply) =>
    reply instanceof Error ? reply.constructor.name : reply.verdicts,
  );

test('the keys of a shard share a call, which goes to its primary', async () => {
  expect(await check('a1', 'a2', 'a3')).toEqual([[1], [1], [1]]);
  expect(sent).toEqual([{ shard: 'a', keys: ['a1', 'a2', 'a3'], isSentAgain: false }]);
});

test('a single key is left to the client of the cluster, which follows its slot', async () => {
  await check('a1');
  expect(sent).toEqual([{ shard: undefined, keys: ['a1'], isSentAgain: false }]);
});

test('a key that is elsewhere is checked again by itself, and the others are decided', async () => {
  moved.add('a2');
  expect(await check('a1', 'a2', 'a3')).toEqual([[1], [1], [1]]);
  expect(sent.slice(1)).toEqual([{ shard: undefined, keys: ['a2'], isSentAgain: false }]);
  await check('a1', 'a3');
  expect(sent.at(-1)).toMatchObject({ shard: 'a' });
});

test('keys that are elsewhere share a call if they share a slot', async () => {
  for (const key of ['a2', 'a2x', 'a3']) moved.add(key);
  await check('a1', 'a2', 'a2x', 'a3');
  expect(sent.slice(1).map(({ keys }) => keys)).toEqual([['a2', 'a2x'], ['a3']]);
});

test('a shard on which nothing is found gets a call for each slot, for a second', async () => {
  for (const key of ['a1', 'a2']) moved.add(key);
  await check('a1', 'a2');
  sent = [];
  moved.clear();
  await check('a1', 'a2', 'a3');
  expect(sent.map(({ shard, keys }) => [shard, keys])).toEqual([
    [undefined, ['a1']],
    [undefined, ['a2']],
    [undefined, ['a3']],
  ]);
  // Only this shard.
  await check('b1', 'b2');
  expect(sent.at(-1)).toMatchObject({ shard: 'b' });
  await clock.advance(1000);
  await check('a1', 'a2');
  expect(sent.at(-1)).toMatchObject({ shard: 'a', keys: ['a1', 'a2'] });
});

test('without a connection to the primary, each slot has a call', async () => {
  known.clear();
  expect(await check('a1', 'a2')).toEqual([[1], [1]]);
  expect(sent.map(({ shard }) => shard)).toEqual([undefined, undefined]);
});

test('if the call of one slot fails, the others are decided', async () => {
  known.clear();
  failing = [new ErrorReply('CLUSTERDOWN The cluster is down')];
  expect(await check('a1', 'a2')).toEqual(['StoreUnavailableError', [1]]);
});

test('a key that is elsewhere may have been decided by an earlier attempt', async () => {
  moved.add('a2');
  failing = [new Error('Connection is closed.')];
  // Sends a call again that fails.
  scripts = scriptsWith({
    run: async <Reply>(call: Call<Reply>) =>
      call.send(1, () => true).catch(() => call.send(2, () => true)),
  });
  expect(await check('a1', 'a2')).toEqual([[1], [1]]);
  expect(sent.map(({ keys, isSentAgain }) => [keys, isSentAgain])).toEqual([
    [['a1', 'a2'], false],
    [['a1', 'a2'], true],
    [['a2'], true],
  ]);
});
