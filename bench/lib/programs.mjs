// The programs that are measured side by side, and how to start each.
import { join } from 'node:path';

import { nativePrograms } from './native-peers.mjs';
import { NativeServer } from './native-server.mjs';
import { peer, RedisServer, Server, SLUICE } from './processes.mjs';

/**
 * All programs that this run can measure, in the order of the tables. Each has a name, whether it `usesRedis`, and
 * `start({redis, limit})`.
 */
export function programsOf({ with: paths, before }) {
  const node = (name, file, usesRedis = true) => ({
    name,
    usesRedis,
    start: ({ redis, limit }) =>
      Server.start(name, file, {
        MAX_REQUESTS: String(limit),
        ...(usesRedis ? { REDIS_URL: redis.url } : {}),
      }),
  });
  return [
    node('sluice', SLUICE),
    node('embedded', SLUICE, false),
    ...(before ? [node('before', join(before, 'dist', 'main.js'))] : []),
    ...nativePeersOf(paths),
    node('rate-limiter-flexible', peer('rate-limiter-flexible')),
    node('express-rate-limit', peer('express-rate-limit')),
    node('bare', peer('bare'), false),
  ];
}

/** The peers in other languages of which there are paths, like `programsOf`. */
export function nativePeersOf(paths) {
  return nativePrograms(paths).map((program) => ({
    ...program,
    start: (settings) => NativeServer.start(program, settings),
  }));
}

/** What `run` returns, and the CPU of a started program, and of its Redis, for each of its answers. */
export async function withCpu(program, run) {
  const [cpu, redisCpu] = [await program.cpuMicros(), await program.redisCpuMicros()];
  const result = await run();
  return {
    ...result,
    cpuMicros: ((await program.cpuMicros()) - cpu) / result.answers,
    redisCpuMicros: ((await program.redisCpuMicros()) - redisCpu) / result.answers,
  };
}

/** Starts a program, on a Redis of its own if it uses one, so that no program pays for another's data. */
export async function startProgram({ name, usesRedis, start }, { redisProgram, limit }) {
  const redis = usesRedis ? await RedisServer.start(redisProgram) : undefined;
  const server = await start({ redis, limit });
  return {
    name,
    server,
    cpuMicros: () => server.cpuMicros(),
    redisCpuMicros: async () => (redis ? await redis.cpuMicros() : 0),
    stop: async () => {
      await server.stop();
      await redis?.stop();
    },
  };
}
