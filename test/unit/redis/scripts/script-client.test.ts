import { setImmediate as nextTick } from 'node:timers/promises';

import { type Command, type Redis, ReplyError } from 'ioredis';

import { eventLoop } from '../../../../src/common/ticks.js';
import { NotWantedError } from '../../../../src/redis/availability/store-errors.js';
import { ScriptClient } from '../../../../src/redis/scripts/script-client.js';
import { type Script } from '../../../../src/redis/scripts/script-loader.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';

const ErrorReply = ReplyError as new (message: string) => Error;
const CLOSED = new Error('Connection is closed.');
const OUT_OF_MEMORY = new ErrorReply("OOM allow-oom flag is not set on the script, can't run it");
const wanted = (): boolean => true;

const CHECK = scriptOf('check');
const SETTLE = scriptOf('settle');
const SHARDS = ['a', 'b'];

function scriptOf(name: string): Script {
  const library = { name: `sluice_${name}_digest`, text: `library of ${name}` };
  return { name, text: `text of ${name}`, sha1: `sha1 of ${name}`, library };
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
  const isAnswering = (): boolean => [...nodes.values()].some(({ answers }) => answers.length > 0);
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

  test('are not loaded again elsewhere while calls that need them come in', async () => {
    const replies = Promise.all(['a0', 'a1', 'a2'].map((key) => call(key)));
    await nextTick();
    // The other primary answers at once, and the one of the calls after all replies that were before the load.
    for (const answer of nodeAt('a').answers.splice(0)) {
      answer();
      await nextTick();
      for (const answerLoad of nodeAt('b').answers.splice(0)) answerLoad();
      await nextTick();
    }
    await answerAll();
    expect(await replies).toEqual(['a0', 'a1', 'a2']);
    for (const shard of SHARDS) expect(nodeAt(shard).by(LOAD)).toEqual([CHECK.library.text]);
  });

  test('are loaded again when they are lost', async () => {
    for (let i = 0; i < 2; i += 1) {
      await answered(Promise.all(['a0', 'a1'].map((key) => call(key))));
      nodeAt('a').known.clear();
    }
    expect(nodeAt('a').by(LOAD)).toHaveLength(2);
    expect(nodeAt('b').by(LOAD)).toHaveLength(2);
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

  test.each(['LOADING Redis is loading', 'READONLY You can not write against a read only replica'])(
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
  ])('that Redis has not or does not allow (%s: %s) give way to scripts', async (name, message) => {
    nodeAt('a').failing.set(name, [new ErrorReply(message)]);
    expect(await answered(Promise.all(['a0', 'a1'].map((key) => call(key))))).toEqual(['a0', 'a1']);
    expect(client.operation).toBe('EVALSHA');
    expect(said()).toContainEqual(['Redis runs the scripts by EVALSHA', message]);

    expect(await answered(call('b0'))).toBe('b0');
    expect(nodeAt('b').by('fcall')).toEqual([]);
  });

  test('give way to scripts on a shard without memory, until it may have some', async () => {
    for (const shard of SHARDS) nodeAt(shard).known.add(CHECK.library.name);
    nodeAt('a').failing.set('fcall', [OUT_OF_MEMORY]);
    await answered(Promise.all(['a0', 'b0'].map((key) => call(key))));
    expect(await answered(Promise.all(['a1', 'b1'].map((key) => call(key))))).toEqual(['a1', 'b1']);
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

  test('each node is sent a script of its own, and each script once', async () => {
    await answered(
      Promise.all([
        ...['a0', 'a1', 'b0', 'b1'].map((key) => call(key)),
        ...['a2', 'a3'].map((key) => call(key, wanted, SETTLE)),
      ]),
    );
    expect([nodeAt('a').by('eval'), nodeAt('b').by('eval')]).toEqual([['a0', 'a2'], ['b0']]);
  });

  test('a script that is forgotten once more is sent once more', async () => {
    for (const keys of [
      ['a0', 'a1'],
      ['a2', 'a3'],
    ]) {
      await answered(Promise.all(keys.map((key) => call(key))));
      nodeAt('a').known.clear();
    }
    expect(nodeAt('a').by('eval')).toEqual(['a0', 'a2']);
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
