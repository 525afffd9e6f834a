import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that systems give to outgoing connections. Otherwise a client of a server that is down
 * would sometimes connect to itself, and hold the port.
 */
const FIRST_PORT = 10_000;
/** Each of jest's workers has ports of its own, so that none takes the port of a restarting server. */
const PORTS_PER_WORKER = 1_000;
const WORKERS = 22;

const given = new Set<number>();

/** A port of 127.0.0.1 that is free and has not been given to this test file before. */
export async function freePort(): Promise<number> {
  const worker = Number(process.env.JEST_WORKER_ID ?? 1) % WORKERS;
  while (given.size < PORTS_PER_WORKER) {
    const offset = Math.floor(Math.random() * PORTS_PER_WORKER);
    const port = FIRST_PORT + worker * PORTS_PER_WORKER + offset;
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
  throw new Error(`this file has asked for all ${PORTS_PER_WORKER} ports of its worker`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
