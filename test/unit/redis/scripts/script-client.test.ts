import { type Command, type Redis, ReplyError } from 'ioredis';

import { ScriptClient } from '../../../../src/redis/scripts/script-client.js';

const ErrorReply = ReplyError as new (message: string) => Error;
const SCRIPT = { name: 'check', text: 'return 1', sha1: 'sha1 of check' };
const OTHER = { name: 'settle', text: 'return 2', sha1: 'sha1 of settle' };
const wanted = (): boolean => true;

/** The commands sent, with their first keys. */
let sent: [command: string, key: string][];
/** Nodes and the scripts that each knows. */
let known: Set<string>;
/** Answers what has been sent, in its order. */
let answers: (() => void)[];
let failsNextEval: boolean;
let client: ScriptClient;
beforeEach(() => {
  failsNextEval = false;
  sent = [];
  known = new Set();
  answers = [];
  const cluster = {
    isCluster: true,
    sendCommand: ({ name, args }: Command) =>
      new Promise((resolve, reject) => {
        const [script, , key] = args as string[];
        sent.push([name, key!]);
        answers.push(() => {
          const { sha1 } = [SCRIPT, OTHER].find((each) =>
            [each.text, each.sha1].includes(script!),
          )!;
          const place = `${nodeOf(key!)} ${sha1}`;
          if (name === 'eval' && failsNextEval) {
            failsNextEval = false;
            reject(new Error('Connection is closed.'));
            return;
          }
          if (name === 'eval') known.add(place);
          if (known.has(place)) resolve(key);
          else reject(new ErrorReply('NOSCRIPT No matching script. Please use EVAL.'));
        });
      }),
  };
  client = new ScriptClient(cluster as unknown as Redis, nodeOf);
});

function nodeOf(name: string): string {
  return name[0]!;
}

const call = (key: string, isWanted = wanted, script = SCRIPT): Promise<unknown> =>
  client.sendWithOthers({ script, keys: [key], args: [] }, isWanted);

async function answerAll(): Promise<void> {
  while (answers.length > 0) {
    for (const answer of answers.splice(0)) answer();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const commands = (name: string): string[] =>
  sent.filter(([command]) => command === name).map(([, key]) => key);

test('of calls whose script is not known, the first sends it, and the others wait for it', async () => {
  const keys = Array.from({ length: 1000 }, (_, i) => `a${i}`);
  const replies = Promise.all(keys.map((key) => call(key)));
  await answerAll();
  expect(await replies).toEqual(keys);
  expect(commands('eval')).toEqual(['a0']);
  expect(commands('evalsha')).toEqual([...keys, ...keys.slice(1)]);
});

test('each node is sent a script of its own, and each script once', async () => {
  const replies = Promise.all([
    ...['a0', 'a1', 'b0', 'b1'].map((key) => call(key)),
    ...['a2', 'a3'].map((key) => call(key, wanted, OTHER)),
  ]);
  await answerAll();
  await replies;
  expect(commands('eval')).toEqual(['a0', 'b0', 'a2']);
});

test('a script that is forgotten once more is sent once more', async () => {
  const first = Promise.all(['a0', 'a1'].map((key) => call(key)));
  await answerAll();
  await first;
  known.clear();
  const second = Promise.all(['a2', 'a3'].map((key) => call(key)));
  await answerAll();
  await second;
  expect(commands('eval')).toEqual(['a0', 'a2']);
});

test('where the one that sends it fails, another does', async () => {
  failsNextEval = true;
  const replies = Promise.allSettled(['a0', 'a1', 'a2'].map((key) => call(key)));
  await answerAll();
  expect((await replies).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
  ]);
  expect(commands('eval')).toEqual(['a0', 'a1']);
});

test('a call that nobody waits for any more is not sent', async () => {
  let isWanted = true;
  const first = call('a0');
  const second = call('a1', () => isWanted).catch((error: unknown) => error);
  for (const answer of answers.splice(0)) answer();
  await new Promise((resolve) => setImmediate(resolve));
  isWanted = false;
  await answerAll();
  await first;
  expect(await second).toMatchObject({ message: expect.stringMatching(/^NOSCRIPT/) as string });
  expect(commands('evalsha')).toEqual(['a0', 'a1']);
});
