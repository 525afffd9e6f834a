import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { pause } from '../../common/pause.js';
import { firstPendingResponse } from '../intake/connection-state.js';

const IDLE_SWEEP_MILLIS = 20;
/** What arrives while these are ended, some 0.1 ms, is lost. */
const ENDED_PER_TURN = 5;

/**
 * Ends the connections that are idle, a few in each turn of the event loop, spread evenly over `millis`. All that has
 * arrived is read before: a request that was sent to a connection before its end is answered, and not reset.
 * @param hurry ends them without pauses when it is aborted
 */
export async function endIdle(
  connections: ReadonlySet<Socket>,
  millis: number,
  hurry?: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  await fullTurn();
  const idle = [...connections].filter(isIdle);
  for (let i = 0; i < idle.length; i += ENDED_PER_TURN) {
    const early = startedAt + (millis * i) / idle.length - performance.now();
    if (early > 0) await pause(early, hurry);
    // The event loop reads before it gets there.
    await nextTurn();
    for (const socket of idle.slice(i, i + ENDED_PER_TURN)) if (isIdle(socket)) socket.destroy();
  }
}

/**
 * Has `server` take no new connection. Resolves when the last has ended.
 * @param connections those of the server that requests come on
 */
export async function stopAccepting(
  server: HttpServer,
  connections: ReadonlySet<Socket>,
): Promise<void> {
  // Those that wait to be accepted would be reset.
  await fullTurn();
  // server.close() calls it. It would end all idle connections in this turn, and reset those with a request to read.
  server.closeIdleConnections = () => undefined;
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  void endIdle(connections, 0);
  // Some become idle later.
  const sweep = setInterval(() => void endIdle(connections, 0), IDLE_SWEEP_MILLIS);
  await closed;
  clearInterval(sweep);
}

/** Resolves when the event loop has accepted and read what is there now. */
async function fullTurn(): Promise<void> {
  // The turn under way may be past that.
  await nextTurn();
  await nextTurn();
}

/**
 * Whether a connection is between two requests. One that has sent nothing yet is not: its first request may be on the
 * way. Node has no public name for what reads a connection, nor for the time since its request began.
 */
function isIdle(socket: Socket): boolean {
  const { parser } = socket as Socket & { parser?: { duration(): number } | null };
  return parser?.duration() === 0 && !firstPendingResponse(socket);
}
