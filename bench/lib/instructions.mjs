// How many instructions Redis runs for a plain check, by valgrind: on any machine, however busy, the same to a thousandth.
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { RedisServer } from './processes.mjs';
import { progress } from './progress.mjs';
import { plainBatch } from './script-calls.mjs';

const HOUR = 3_600_000;
const MOST = 1_000_000_000;
/** Sent at once. */
const PIPELINED = 100;
/** A call of a quiet key, and those under load, on one key and over many. `known`: how many keys there are. */
const CASES = [
  { name: 'one check', keys: 1, checks: 1, known: 100, calls: 1000 },
  { name: '44 checks of one key', keys: 1, checks: 44, known: 1, calls: 500 },
  { name: '13 keys', keys: 13, checks: 1, known: 5000, calls: 500 },
];

/**
 * @param {Record<'base' | 'now', string>} folders of the builds
 * @returns undefined if valgrind is not installed
 */
export async function countInstructions(folders, redisProgram) {
  if (spawnSync('valgrind', ['--version']).error) return undefined;
  const counted = [];
  for (const one of CASES) {
    progress(`instructions of Redis: ${one.name}`);
    const [base, now] = [await perCheck(folders.base, one), await perCheck(folders.now, one)];
    counted.push({ name: one.name, base, now, ratio: now / base });
  }
  return counted;

  /** What a run takes that makes more calls is what these take: to start and to load takes the same. */
  async function perCheck(build, one) {
    const [few, many] = await Promise.all(
      [one.calls, 3 * one.calls].map((calls) => instructionsOf(build, one, calls, redisProgram)),
    );
    return (many - few) / (2 * one.calls * one.keys * one.checks);
  }
}

async function instructionsOf(build, one, calls, redisProgram) {
  const { library, commandOf } = await plainChecksOf(build, one);
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const log = join(folder, 'log');
  const valgrind = ['valgrind', '--tool=cachegrind', '--cachegrind-out-file=/dev/null'];
  const redis = await RedisServer.start(
    redisProgram,
    ['--hz', '1'],
    [...valgrind, `--log-file=${log}`],
  );
  await redis.client.call('FUNCTION', 'LOAD', 'REPLACE', library);
  const send = (n, assumption) => {
    const [command, ...words] = commandOf(n, assumption);
    return redis.client.call(command, ...words);
  };
  // The keys' windows begin.
  for (let n = 0; n * one.keys < one.known; n += 1) await send(n);
  for (let n = 0; n < calls; n += PIPELINED) {
    await Promise.all(Array.from({ length: PIPELINED }, (_, i) => send(n + i, 'inWindow')));
  }
  // A killed one reports nothing.
  await redis.stop('SIGTERM');
  const report = readFileSync(log, 'utf8');
  rmSync(folder, { recursive: true });
  const [, counted] = /I +refs: +([\d,]+)/.exec(report) ?? [];
  if (counted === undefined) throw new Error(`valgrind counted nothing: ${report}`);
  return Number(counted.replaceAll(',', ''));
}

/** The calls of a build, and the library that they need. */
async function plainChecksOf(build, { keys, checks, known }) {
  const load = (path) => import(pathToFileURL(join(build, path)).href);
  const { loadScript } = await load('dist/redis/scripts/script-loader.js');
  const { checkCommand, keyLimits, naming } = await load('bench/lib/script-calls.mjs');
  const script = loadScript('check');
  // The second form is of builds without limits of several kinds.
  const limits = keyLimits?.(HOUR, MOST) ?? {
    windowMillis: HOUR,
    maxRequests: MOST,
    maxRequestsInQueue: 400,
  };
  const commandOf = (n, assumption) => {
    const batches = Array.from({ length: keys }, (_, i) => {
      const names = naming.namesOf(`instructions-${(n * keys + i) % known}`);
      return { ...plainBatch(names, Array.from({ length: checks }, randomUUID)), assumption };
    });
    return checkCommand(script, batches, limits);
  };
  return { library: script.library.text, commandOf };
}
