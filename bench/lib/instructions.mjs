// How many instructions Redis runs for a plain check, by valgrind: on any machine, however busy, the same to a thousandth.
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { Redis } from 'ioredis';

import { freePort } from '../../scripts/lib/free-port.mjs';
import { accepts, end, track } from './children.mjs';
import { progress } from './progress.mjs';

const HOUR = 3_600_000;
const MOST = 1_000_000_000;
/** Sent at once. */
const PIPELINED = 100;
/** The checks of one call under load, on one key and over many, and those of a quiet key. */
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
  async function perCheck(folder, one) {
    const few = await instructionsOf(folder, one, one.calls, redisProgram);
    const many = await instructionsOf(folder, one, 3 * one.calls, redisProgram);
    return (many - few) / (2 * one.calls * one.keys * one.checks);
  }
}

async function instructionsOf(build, { keys, checks, known }, calls, redisProgram) {
  const commandOf = await plainChecksOf(build, { keys, checks, known });
  const [port, folder] = [await freePort(), mkdtempSync(join(tmpdir(), 'sluice-bench-'))];
  const ofTool = ['--tool=cachegrind', `--cachegrind-out-file=${join(folder, 'out')}`];
  const ofRedis = ['--port', port, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--hz', 1];
  const child = spawn('valgrind', [...ofTool, redisProgram, ...ofRedis.map(String)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  track(child, 'redis-server in valgrind');
  let report = '';
  child.stderr.on('data', (piece) => (report += piece));
  await accepts(port);
  const client = new Redis(port, '127.0.0.1');
  await client.call('FUNCTION', 'LOAD', 'REPLACE', commandOf.library);
  const send = (n, assumption) => {
    const [command, ...words] = commandOf(n, assumption);
    return client.call(command, ...words);
  };
  // The keys' windows begin.
  for (let n = 0; n * keys < known; n += 1) await send(n);
  for (let n = 0; n < calls; n += PIPELINED) {
    await Promise.all(Array.from({ length: PIPELINED }, (_, i) => send(n + i, 'inWindow')));
  }
  client.disconnect();
  await end(child, 'SIGTERM');
  rmSync(folder, { recursive: true });
  const [, counted] = /I +refs: +([\d,]+)/.exec(report) ?? [];
  if (counted === undefined) throw new Error(`valgrind counted nothing: ${report}`);
  return Number(counted.replaceAll(',', ''));
}

/** The calls of a build, which `library` defines. */
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
    const batches = Array.from({ length: keys }, (_, i) => ({
      names: naming.namesOf(`instructions-${(n * keys + i) % known}`),
      overrides: {},
      arePlain: true,
      assumption,
      checks: Array.from({ length: checks }, () => ({
        requestId: randomUUID(),
        request: { canWait: false },
      })),
    }));
    return checkCommand(script, batches, limits);
  };
  return Object.assign(commandOf, { library: script.library.text });
}
