// The machine and the programs of the measurements.
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { spawnSync } from 'node:child_process';

import { describeCheckout, describePeer } from './native-peers.mjs';

const PEERS = [
  'express',
  'ioredis',
  'rate-limiter-flexible',
  'express-rate-limit',
  'rate-limit-redis',
];

export function machine(redisVersion, generator, { with: natives, before }) {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release().split('-')[0]}`,
    node: process.version,
    redis: redisVersion,
    loadGenerator: generator === 'wrk' ? wrkVersion() : versionOf('autocannon'),
    latencyGenerator: versionOf('autocannon'),
    peers: PEERS.map(versionOf),
    nativePeers: Object.entries(natives).map(([peer, path]) => describePeer(peer, path)),
    before: before && describeCheckout(before).stdout.trim(),
  };
}

function versionOf(name) {
  const path = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${JSON.parse(readFileSync(path, 'utf8')).version}`;
}

function wrkVersion() {
  const { stdout } = spawnSync('wrk', ['--version'], { encoding: 'utf8' });
  return `wrk ${/wrk \D*([\d.]+)/.exec(stdout)?.[1] ?? ''}`;
}
