// How fast Redis itself runs the scripts, by redis-benchmark: no HTTP, no Node.
import { spawnSync } from 'node:child_process';

import { loadScript } from '../../dist/redis/scripts/script-loader.js';
import { progress } from '../lib/progress.mjs';
import { checkCommand, keyLimits, naming, plainBatch } from '../lib/script-calls.mjs';
import { summary } from '../lib/statistics.mjs';

const CALLS = 50_000;
const LIMITS = keyLimits(1000, 1_000_000_000);
/** The calls that the script of rate-limiter-flexible 11 makes for each decision. */
const PEER_SCRIPT = [
  "redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')",
  "local consumed = redis.call('incrby', KEYS[1], ARGV[1])",
  "return { consumed, redis.call('pttl', KEYS[1]) }",
].join('\n');

/** @returns undefined if redis-benchmark is not installed */
export async function rawScripts({ redis, rounds }) {
  if (spawnSync('redis-benchmark', ['--version']).error) return undefined;
  const check = loadScript('check');
  await redis.client.call('FUNCTION', 'LOAD', 'REPLACE', check.library.text);
  const peerSha1 = await redis.client.script('LOAD', PEER_SCRIPT);
  const commands = [
    ['PING', 1, ['PING']],
    ['rate-limiter-flexible, one key', 1, ['EVALSHA', peerSha1, '1', 'rlf:hot', '1', '1']],
    ['check.lua, one key, one check', 1, commandOf(check, 1, 1)],
    ['check.lua, one key, 64 checks', 64, commandOf(check, 1, 64)],
    ['check.lua, 16 keys, one check each', 16, commandOf(check, 16, 1)],
  ];
  const runs = commands.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [i, [name, decisions, command]] of commands.entries()) {
      progress(`raw scripts: round ${round + 1} of ${rounds}, ${name}`);
      runs[i].push((await callsPerSecond(redis, command, CALLS / decisions)) * decisions);
    }
  }
  return commands.map(([name], i) => ({ name, decisionsPerSecond: summary(runs[i]) }));
}

/** redis-benchmark replaces `__rand_int__` by a random number. */
function commandOf(script, keys, checks) {
  const requestIds = Array.from(
    { length: checks },
    (_, i) => `33ae0015-5d23-4b92-${i}-__rand_int__`,
  );
  const batches = Array.from({ length: keys }, (_, key) =>
    plainBatch(naming.namesOf(`raw-${key}-__rand_int__`), requestIds),
  );
  return checkCommand(script, batches, LIMITS);
}

async function callsPerSecond(redis, command, calls) {
  const options = ['-p', redis.port, '-c', '64', '-n', Math.ceil(calls), '-r', '100', '--csv'];
  const { stdout, stderr } = spawnSync('redis-benchmark', [...options, ...command], {
    encoding: 'utf8',
  });
  const error = /error[^\n]*/i.exec(stdout + stderr);
  if (error) throw new Error(`redis-benchmark: ${error[0]}`);
  const perSecond = Number(/^"[^\n]*?","([\d.]+)"/m.exec(stdout.split('\n').at(-2))?.[1]);
  if (!(perSecond > 0)) throw new Error(`redis-benchmark measured nothing: ${stdout}`);
  return perSecond;
}
