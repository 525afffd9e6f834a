import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';

import { pause } from '../../common/pause.js';
import { firstPendingResponse } from '../intake/connection-state.js';

const IDLE_SWEEP_MILLIS = 20;
/** A request that arrives while these are ended (about 0.1 ms) is lost. */
const ENDED_PER_TICK = 5;

/**
 * Ends the connections that are idle, a few in each tick, spread evenly over `millis`. Everything
 * that has arrived is read before, so that a request that was sent before the end of its connection is answered, and
 * not reset.
 * @param hurry ends them without pauses when it is aborted
 */
export async function endIdle(
  connections: ReadonlySet<Socket>,
  millis: number,
  hurry?: AbortSignal,
): Promise<void> {
  await endThose(connections, isIdle, millis, hurry);
}

/**
 * Ends the connections that are owed no answer: no request that has arrived on them in full is unanswered. Unlike
 * `endIdle`, it ends connections that have sent nothing yet, or a part of a request. A request that is on the way
 * fails, as on a connection that was idle.
 */
export async function endUnowed(connections: ReadonlySet<Socket>): Promise<void> {
  await endThose(connections, isOwedNothing);
}

async function endThose(
  connections: ReadonlySet<Socket>,
  mayEnd: (socket: Socket) => boolean,
  millis = 0,
  hurry?: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  await fullTick();
  const idle = [...connections].filter(mayEnd);
  for (let i = 0; i < idle.length; i += ENDED_PER_TICK) {
    const early = startedAt + (millis * i) / idle.length - performance.now();
    if (early > 0) await pause(early, hurry);
    // The event loop reads before it gets there.
    await nextTick();
    for (const socket of idle.slice(i, i + ENDED_PER_TICK)) if (mayEnd(socket)) socket.destroy();
  }
}

/**
 * Makes `server` take no new connections. Resolves when the last one has ended.
 * @param connections the connections of the server that carry requests
 */
export async function stopAccepting(
  server: HttpServer,
  connections: ReadonlySet<Socket>,
): Promise<void> {
  // Connections that wait to be accepted would be reset.
  await fullTick();
  // server.close() calls it, and it would end all idle connections in this tick, including those with an unread
  // request.
  server.closeIdleConnections = () => undefined;
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  void endIdle(connections, 0);
  // Other connections become idle later.
  const sweep = setInterval(() => void endIdle(connections, 0), IDLE_SWEEP_MILLIS);
  await closed;
  clearInterval(sweep);
}

/** Resolves when the event loop has accepted and read everything that is there now. */
async function fullTick(): Promise<void> {
  // The current tick may already be past that phase.
  await nextTick();
  await nextTick();
}

/**
 * Whether a connection is between two requests. A connection that has sent nothing yet is not: its first request may be
 * on the way. Node has no public name for the parser of a connection, nor for the time since its request began.
 */
function isIdle(socket: Socket): boolean {
  const { parser } = socket as Socket & { parser?: { duration(): number } | null };
  return parser?.duration() === 0 && !firstPendingResponse(socket);
}

function isOwedNothing(socket: Socket): boolean {
  return firstPendingResponse(socket)?.req.complete !== true;
}
