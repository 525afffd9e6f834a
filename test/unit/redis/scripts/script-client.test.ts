import { setImmediate as nextTick } from 'node:timers/promises';

import { type Command, type Redis, ReplyError } from 'ioredis';

import { eventLoop } from '../../../../src/common/ticks.js';
import type { Call } from '../../../../src/redis/availability/call-guard.js';
import { NotWantedError } from '../../../../src/redis/availability/store-errors.js';
import {
  type CheckBatch,
  type KeyAssumption,
  encodeChecks,
} from '../../../../src/redis/scripts/check-codec.js';
import { ScriptClient } from '../../../../src/redis/scripts/script-client.js';
import type { Script } from '../../../../src/redis/scripts/script-loader.js';
import { Scripts } from '../../../../src/redis/scripts/scripts.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { keyLimits } from '../../../support/limits.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { type RecordedLog, recordLog } from '../../../support/recorded-log.js';
import { SCRIPT_CALLER } from '../../../support/script-caller.js';
import { checkBatchOf, type TestCheck } from '../../../support/script-harness.js';
import { unguarded } from '../../../support/unguarded.js';

const ErrorReply = ReplyError as new (message: string) => Error;
const naming = new KeyNaming('p:');

describe('calls of a script', () => {
  const CLOSED = new Error('Connection is closed.');
  const OUT_OF_MEMORY = new ErrorReply("OOM allow-oom flag is not set on the script, can't run it");
  const wanted = (): boolean => true;

  const CHECK = scriptOf('check');
  const SETTLE = scriptOf('settle');
  const SHARDS = ['a', 'b'];

  function scriptOf(name: string): Script {
    const library = { name: `sluice_${name}_digest`, text: `library of ${name}` };
    return { name, text: `text of ${name}`, sha1: `sha1 of ${name}`, library, mayWrite: true };
  }

  /** A server of a cluster, which answers in the order of the commands, when it is told to. */
  class FakeNode {
    readonly known = new Set<string>();
    /** The first key of a call, or what was loaded. */
    readonly got: [command: string, what: string][] = [];
    /** The errors that the next commands of this name fail with. */
    readonly failing = new Map<string, Error[]>();
    readonly answers: (() => void)[] = [];

    command(name: string, script: string, what: string): Promise<unknown> {
      this.got.push([name, what]);
      return new Promise((resolve, reject) => {
        this.answers.push(() => {
          const failure = this.failing.get(name)?.shift();
          if (failure) reject(failure);
          else this.#run(name, script, () => resolve(what), reject);
        });
      });
    }

    #run(name: string, script: string, resolve: () => void, reject: (error: Error) => void): void {
      const { library, ...each } = [CHECK, SETTLE].find((candidate) =>
        [candidate.text, candidate.sha1, candidate.library.name, candidate.library.text].includes(
          script,
        ),
      )!;
      if (name === 'function load' && this.known.has(library.name)) {
        reject(new ErrorReply(`ERR Library '${library.name}' already exists`));
      } else if (name === 'fcall' && !this.known.has(library.name)) {
        reject(new ErrorReply('ERR Function not found'));
      } else if (name === 'evalsha' && !this.known.has(each.sha1)) {
        reject(new ErrorReply('NOSCRIPT No matching script. Please use EVAL.'));
      } else {
        if (name === 'function load') this.known.add(library.name);
        if (name === 'eval') this.known.add(each.sha1);
        resolve();
      }
    }

    /** What it got by a command. */
    by(command: string): string[] {
      return this.got.flatMap(([name, what]) => (name === command ? [what] : []));
    }
  }

  let nodes: Map<string, FakeNode>;
  /** The node that gets a call, if it is not the node of the call's slot: an importing node, after ASK. */
  let redirected: string | undefined;
  let log: RecordedLog;
  let clock: ManualClock;
  beforeEach(() => {
    nodes = new Map(SHARDS.map((shard) => [shard, new FakeNode()]));
    redirected = undefined;
    log = recordLog();
    clock = new ManualClock(0);
  });

  const nodeAt = (shard: string): FakeNode => nodes.get(shard)!;
  const shardOf = (name: string): string => name[0]!;

  function clientWith({ onlyScripts = false } = {}): ScriptClient {
    const commands = {
      sendCommand: ({ name, args }: Command) => {
        const [script, , key] = args as string[];
        return nodeAt(redirected ?? shardOf(key!)).command(name, script!, key!);
      },
    };
    const primaries = new Map(
      [...nodes].map(([shard, node]) => [
        shard,
        {
          call: (command: string, subcommand: string, text: string) =>
            node.command(`${command} ${subcommand}`.toLowerCase(), text, text),
        } as unknown as Redis,
      ]),
    );
    return new ScriptClient({
      connections: {
        commands: commands as unknown as Redis,
        isCluster: true,
        slotOf: () => 0,
        shardOf,
        nodeAt: () => undefined,
        primaries: () => primaries,
      },
      ticks: eventLoop,
      clock,
      logger: log.logger,
      onlyScripts,
    });
  }

  async function answerAll(): Promise<void> {
    const isAnswering = (): boolean =>
      [...nodes.values()].some(({ answers }) => answers.length > 0);
    await nextTick();
    while (isAnswering()) {
      for (const { answers } of nodes.values()) for (const answer of answers.splice(0)) answer();
      await nextTick();
    }
  }

  /** The replies, once all nodes have answered. */
  async function answered<T>(replies: Promise<T>): Promise<T> {
    await answerAll();
    return replies;
  }

  /** What a call fails with. */
  const failureOf = (reply: Promise<unknown>): Promise<unknown> =>
    answered(reply.catch((error: unknown) => error));

  const callOn =
    (client: ScriptClient) =>
    (key: string, isWanted = wanted, script = CHECK): Promise<unknown> =>
      client.sendWithOthers({ script, keys: [key], args: [] }, isWanted);

  const said = (): unknown[] => log.lines.map(({ msg, reason }) => [msg, reason]);

  describe('functions', () => {
    const LOAD = 'function load';
    let client: ScriptClient;
    let call: ReturnType<typeof callOn>;
    beforeEach(() => {
      client = clientWith();
      call = callOn(client);
    });

    test('are loaded once on each primary, however many calls need them', async () => {
      const keys = Array.from({ length: 1000 }, (_, i) => `a${i}`);
      expect(await answered(Promise.all(keys.map((key) => call(key))))).toEqual(keys);
      expect(nodeAt('a').by('fcall')).toEqual([...keys, ...keys]);
      for (const shard of SHARDS) expect(nodeAt(shard).by(LOAD)).toEqual([CHECK.library.text]);
      expect(said()).toEqual([['Redis runs the scripts as functions', undefined]]);
    });

    test('are loaded for a call that nobody waits for any more, and the call is not sent again', async () => {
      let isWanted = true;
      const failed = call('a0', () => isWanted).catch((error: unknown) => error);
      await nextTick();
      for (const answer of nodeAt('a').answers.splice(0)) answer();
      await nextTick();
      isWanted = false;
      await answerAll();
      expect(await failed).toBeInstanceOf(NotWantedError);
      expect(nodeAt('a').by('fcall')).toEqual(['a0']);
      expect(nodeAt('a').known).toContain(CHECK.library.name);
    });

    test('are loaded on the node that a slot moves to', async () => {
      nodeAt('a').known.add(CHECK.library.name);
      redirected = 'b';
      expect(await answered(call('a0'))).toBe('a0');
    });

    test('are not needed on a primary that is down', async () => {
      nodeAt('b').failing.set(LOAD, [CLOSED]);
      expect(await answered(call('a0'))).toBe('a0');
    });

    test('if the connection breaks while they are loaded, are loaded once more', async () => {
      nodeAt('a').failing.set(LOAD, [CLOSED]);
      expect(await answered(call('a0'))).toBe('a0');
      expect(nodeAt('a').by(LOAD)).toHaveLength(2);
    });

    test.each([
      'LOADING Redis is loading',
      'READONLY You can not write against a read only replica',
    ])(
      'if they cannot be loaded for now (%s), fail the call, which has not run',
      async (message) => {
        nodeAt('a').failing.set(LOAD, [new ErrorReply(message)]);
        expect(await failureOf(call('a0'))).toMatchObject({ message });
        expect(nodeAt('a').by('fcall')).toEqual(['a0']);
        expect(client.operation).toBe('FCALL');
      },
    );

    test('fail with the error of the script', async () => {
      nodeAt('a').known.add(CHECK.library.name);
      nodeAt('a').failing.set('fcall', [new ErrorReply('WRONGTYPE Operation against a key')]);
      expect(await failureOf(call('a0'))).toMatchObject({
        message: 'WRONGTYPE Operation against a key',
      });
      expect(client.operation).toBe('FCALL');
    });

    test.each([
      ['fcall', 'ERR unknown command `fcall`, with args beginning with: `x`'],
      ['fcall', "NOPERM this user has no permissions to run the 'fcall' command"],
      [LOAD, "NOPERM User u has no permissions to run the 'function|load' command"],
      [LOAD, "ERR Unknown subcommand or wrong number of arguments for 'LOAD'"],
    ])(
      'that Redis has not or does not allow (%s: %s) give way to scripts',
      async (name, message) => {
        nodeAt('a').failing.set(name, [new ErrorReply(message)]);
        expect(await answered(Promise.all(['a0', 'a1'].map((key) => call(key))))).toEqual([
          'a0',
          'a1',
        ]);
        expect(client.operation).toBe('EVALSHA');
        expect(said()).toContainEqual(['Redis runs the scripts by EVALSHA', message]);

        expect(await answered(call('b0'))).toBe('b0');
        expect(nodeAt('b').by('fcall')).toEqual([]);
      },
    );

    test('give way to scripts on a shard without memory, until it may have some', async () => {
      for (const shard of SHARDS) nodeAt(shard).known.add(CHECK.library.name);
      nodeAt('a').failing.set('fcall', [OUT_OF_MEMORY]);
      await answered(Promise.all(['a0', 'b0'].map((key) => call(key))));
      expect(await answered(Promise.all(['a1', 'b1'].map((key) => call(key))))).toEqual([
        'a1',
        'b1',
      ]);
      expect([nodeAt('a').by('fcall'), nodeAt('b').by('fcall')]).toEqual([['a0'], ['b0', 'b1']]);
      expect([nodeAt('a').by('eval'), nodeAt('a').by('evalsha')]).toEqual([['a0'], ['a0', 'a1']]);

      await clock.advance(1000);
      expect(await answered(call('a2'))).toBe('a2');
      expect(nodeAt('a').by('fcall')).toEqual(['a0', 'a2']);
    });

    test('are not called again for a call that nobody waits for any more', async () => {
      let isWanted = true;
      const reply = call('a0', () => isWanted).catch((error: unknown) => error);
      await nextTick();
      for (const answer of nodeAt('a').answers.splice(0)) answer();
      isWanted = false;
      await answerAll();
      expect(await reply).toMatchObject({ message: 'ERR Function not found' });
      expect(nodeAt('a').by('fcall')).toEqual(['a0']);
    });
  });

  describe('scripts', () => {
    let call: ReturnType<typeof callOn>;
    beforeEach(() => {
      call = callOn(clientWith({ onlyScripts: true }));
    });

    test('of calls whose script is not known, the first sends it, and the others wait for it', async () => {
      const keys = Array.from({ length: 1000 }, (_, i) => `a${i}`);
      expect(await answered(Promise.all(keys.map((key) => call(key))))).toEqual(keys);
      expect(nodeAt('a').by('eval')).toEqual(['a0']);
      expect(nodeAt('a').by('evalsha')).toEqual([...keys, ...keys.slice(1)]);
    });

    test('if the call that sends it fails, another sends it', async () => {
      nodeAt('a').failing.set('eval', [CLOSED]);
      const replies = Promise.allSettled(['a0', 'a1', 'a2'].map((key) => call(key)));
      await answerAll();
      expect((await replies).map(({ status }) => status)).toEqual([
        'rejected',
        'fulfilled',
        'fulfilled',
      ]);
      expect(nodeAt('a').by('eval')).toEqual(['a0', 'a1']);
    });

    test('a call that nobody waits for any more is not sent again', async () => {
      let isWanted = true;
      const first = call('a0');
      const second = call('a1', () => isWanted).catch((error: unknown) => error);
      await nextTick();
      for (const answer of nodeAt('a').answers.splice(0)) answer();
      await nextTick();
      isWanted = false;
      await answerAll();
      await first;
      expect(await second).toBeInstanceOf(NotWantedError);
      expect(nodeAt('a').by('evalsha')).toEqual(['a0', 'a1']);
    });
  });
});

describe('checks of several keys in a cluster', () => {
  const LIMITS = keyLimits({ windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 3 });
  const ELSEWHERE = 'ERR Script attempted to access a non local key in a cluster node script: x';

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
});

describe('the arguments of checks', () => {
  const USUAL = keyLimits({ windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 3 });
  const OTHER = keyLimits({ windowMillis: 5000, maxRequests: 7, maxRequestsInQueue: 0 });

  const batch = (key: string, checks = 1): CheckBatch =>
    checkBatchOf(
      naming.namesOf(key),
      Array.from({ length: checks }, (_, i) => ({ requestId: `${key} ${i}`, canWait: false })),
    );

  /** The argument of all batches, and those that follow it. */
  function argumentsOf(...batches: CheckBatch[]): unknown[] {
    const limitsOf = (key: string) => (key.startsWith('other') ? OTHER : USUAL);
    const circumstances = { isSentAgain: false, mayBeFull: false, hasSeveralSlots: false, time: 0 };
    const { args } = encodeChecks({ ...SCRIPT_CALLER, limitsOf }, batches, circumstances);
    return args.slice(9);
  }

  test('single plain checks of keys with the same limits need no text', () => {
    expect(argumentsOf(batch('a'), batch('b'))).toEqual(['', 'a 0', 'b 0']);
  });

  test('a key with other limits than the first has them in its text', () => {
    const [shapes] = argumentsOf(batch('a'), batch('other'), batch('b'));
    expect(shapes).toBe('1 1=5000:7:0 1');
    const [others] = argumentsOf(batch('other'), batch('another'), batch('b', 2));
    expect(others).toBe('1 1=1000:2:3 2=1000:2:3');
  });

  test('a check says its lane, and its group if it can wait or others may', () => {
    const lane = { kind: 'lane', name: 'a', headStartMillis: 5 } as const;
    const group = { kind: 'group', name: 'b c', weight: 2, maxRequests: 9 } as const;
    const saidOf = (check: TestCheck, assumption: KeyAssumption = 'inWindow'): unknown => {
      const checks = { ...checkBatchOf(naming.namesOf('key'), [check]), assumption };
      const [shapes, said] = argumentsOf(checks);
      return shapes === '' ? '' : [shapes, JSON.parse(said as string)];
    };
    const check = { requestId: 'id', canWait: false };
    const said = { ...group, name: 'b%20c' };
    expect(saidOf({ ...check, list: group })).toBe('');
    expect(saidOf({ ...check, list: group }, 'unknown')).toEqual([
      '1/',
      { requests: { list: said }, maxGroups: 100 },
    ]);
    expect(saidOf({ ...check, list: lane })).toEqual(['1/', { requests: { list: lane } }]);
    expect(saidOf({ ...check, list: group, canWait: true })).toEqual([
      '1/',
      { requests: { canWait: true, list: said }, maxGroups: 100 },
    ]);
  });

  test('checks that ask for the same say it once, and others one by one', () => {
    const ofChecks = (checks: Partial<TestCheck>[]): unknown => {
      const all = checks.map((check, i) => ({ requestId: `${i}`, canWait: false, ...check }));
      const [shapes, said, ...ids] = argumentsOf(checkBatchOf(naming.namesOf('key'), all));
      expect([shapes, ids]).toEqual([`${checks.length}/`, all.map(({ requestId }) => requestId)]);
      return (JSON.parse(said as string) as { requests: unknown }).requests;
    };
    const waits = { canWait: true, maxWaitMillis: 5 };
    expect(ofChecks([waits, waits])).toEqual(waits);
    expect(ofChecks([waits, {}, { hits: 2, number: 7 }])).toEqual([
      waits,
      {},
      { hits: 2, number: 7 },
    ]);
  });
});
