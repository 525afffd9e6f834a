import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports that systems give to outgoing connections. Otherwise a client of a server that is down
 * would sometimes connect to itself, and hold the port.
 */
const FIRST_PORT = 10_000;
/**
 * Each test file takes ranges of its own, so that no other file and no other run takes the port of a server that restarts.
 * It listens on the first port of a range for as long as it has the range.
 */
const PORTS_PER_RANGE = 250;
const RANGES = 88;

const held: Server[] = [];
let ports: number[] = [];

// Programs that are no tests keep their ranges to their ends.
if (typeof afterAll === 'function') {
  afterAll(() => {
    for (const server of held) server.close();
  });
}

/** A port of 127.0.0.1 that is free and has not been given to this test file before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = ports.pop();
    if (port === undefined) ports = await takeRange();
    else if (await isFree(port)) return port;
  }
}

/** Returns the ports of a range that nobody has, in a random order. */
async function takeRange(): Promise<number[]> {
  const worker = Number(process.env.JEST_WORKER_ID ?? 1);
  for (let i = 0; i < RANGES; i += 1) {
    const first = FIRST_PORT + ((worker * 4 + i) % RANGES) * PORTS_PER_RANGE;
    const server = await listen(first);
    if (!server) continue;
    server.unref();
    held.push(server);
    return Array.from({ length: PORTS_PER_RANGE - 1 }, (_, i) => first + 1 + i).sort(
      () => Math.random() - 0.5,
    );
  }
  throw new Error(`other test files have all ${RANGES} ranges of ports`);
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen(port);
  server?.close();
  if (server) await once(server, 'close');
  return server !== undefined;
}

/** Listens on a port. @returns undefined if another server does */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}
