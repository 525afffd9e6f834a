// The peers in other languages, which users build themselves (`--with NAME=PATH`).
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname } from 'node:path';

import * as envoyRatelimit from '../peers/envoy-ratelimit.mjs';
import * as gocc from '../peers/gocc.mjs';
import * as limitador from '../peers/limitador.mjs';
import * as redisRate from '../peers/redis-rate.mjs';

export const NATIVE_PEERS = {
  gocc,
  limitador,
  'envoy-ratelimit': envoyRatelimit,
  'redis-rate': redisRate,
};

/**
 * The programs of the peers. A checkout is built first, where its peer can be.
 * @param {Record<string, string>} paths of programs or checkouts
 */
export function builtPeers(paths) {
  return Object.fromEntries(
    Object.entries(paths).map(([peer, path]) => {
      const { build } = NATIVE_PEERS[peer];
      return [peer, build && statSync(path).isDirectory() ? build(path) : path];
    }),
  );
}

/**
 * The peers that can be started.
 * @param {Record<string, string>} paths of their programs
 */
export function nativePrograms(paths) {
  return Object.entries(paths).flatMap(([peer, path]) => {
    const { asking, programs } = NATIVE_PEERS[peer];
    return Object.entries(programs).map(([name, { launch, usesRedis = false }]) => ({
      name,
      path,
      asking,
      usesRedis,
      launch,
    }));
  });
}

/** A peer and its version, as the peer reports it, or from the checkout or the Go module with its program. */
export function describePeer(peer, path) {
  const byOption = NATIVE_PEERS[peer].version === 'option';
  const { stdout, status } = byOption
    ? spawnSync(path, ['--version'], { encoding: 'utf8' })
    : describeCheckout(dirname(path));
  const version =
    status === 0
      ? /v?\d\S*(?: \([0-9a-f]+\))?|[0-9a-f]{7,}\S*/.exec(stdout)?.[0]
      : moduleVersion(path);
  return `${peer} ${version ?? 'of unknown version'}`;
}

/** Go keeps each version of a module in a folder with its name and version. */
function moduleVersion(path) {
  return /@(v[^/]+)\//.exec(path)?.[1];
}

/** The version that git gives to a checkout. */
export function describeCheckout(folder) {
  return spawnSync('git', ['-C', folder, 'describe', '--tags', '--always', '--dirty'], {
    encoding: 'utf8',
  });
}
