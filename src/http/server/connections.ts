import { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTick, setTimeout as delay } from 'node:timers/promises';

import { pause } from '../../common/deadline.js';
import { firstPendingResponse } from '../intake/connection-state.js';

const IDLE_SWEEP_MILLIS = 20;
/** A request that arrives while these are ended (about 0.1 ms) is lost. */
const ENDED_PER_TICK = 5;

/**
 * Ends the connections that are idle, a few in each tick, spread evenly over `millis`. Everything
 * that has arrived is read before, so that a request that was sent before the end of its connection is answered, and
 * not reset. A connection that is used meanwhile stays: its answer asks the client to end it.
 * @param connections the connections of the server that carry requests
 * @param hurry ends them without pauses when it is aborted
 */
export async function endIdle(
  server: HttpServer,
  connections: ReadonlySet<Socket>,
  millis: number,
  hurry?: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  await fullTick();
  const idle = idleOf(server, connections);
  for (let i = 0; i < idle.length; i += ENDED_PER_TICK) {
    const early = startedAt + (millis * i) / idle.length - performance.now();
    if (early > 0) await pause(early, hurry);
    // The event loop reads before it gets there.
    await nextTick();
    for (const { socket, bytesRead } of idle.slice(i, i + ENDED_PER_TICK)) {
      if (socket.bytesRead === bytesRead) socket.destroy();
    }
  }
}

/**
 * Ends the connections that are owed no answer: no request that has arrived on them in full is unanswered. Unlike
 * `endIdle`, it ends connections that have sent nothing yet, or a part of a request. A request that is on the way
 * fails, as on a connection that was idle.
 */
export async function endUnowed(connections: ReadonlySet<Socket>): Promise<void> {
  await fullTick();
  const unowed = [...connections].filter(isOwedNothing);
  for (const [i, socket] of unowed.entries()) {
    if (i % ENDED_PER_TICK === 0) await nextTick();
    if (isOwedNothing(socket)) socket.destroy();
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
  const closed = new Promise<boolean>((resolve) => {
    server.close(() => resolve(true));
  });
  let isClosed: boolean;
  do {
    await endIdle(server, connections, 0);
    // Other connections become idle later.
    isClosed = await Promise.race([closed, delay(IDLE_SWEEP_MILLIS, false)]);
  } while (!isClosed);
}

/** Resolves when the event loop has accepted and read everything that is there now. */
async function fullTick(): Promise<void> {
  // The current tick may already be past that phase.
  await nextTick();
  await nextTick();
}

/**
 * The connections between two requests: those that `closeIdleConnections` would destroy. Nothing else that is public
 * shows that a part of a request has arrived. A connection that has sent nothing yet is not idle, although Node 26 would
 * close it: its first request may be on the way.
 */
function idleOf(server: HttpServer, connections: ReadonlySet<Socket>) {
  // Those that wait for their turn may be many.
  const candidates = [...connections].filter(
    (socket) => firstPendingResponse(socket)?.writableEnded !== false,
  );
  const idle = new Set<Socket>();
  for (const socket of candidates) {
    socket.destroy = () => {
      idle.add(socket);
      return socket;
    };
  }
  HttpServer.prototype.closeIdleConnections.call(server);
  for (const socket of candidates) Reflect.deleteProperty(socket, 'destroy');
  // Node names them in any order.
  return candidates
    .filter((socket) => idle.has(socket) && socket.bytesRead > 0 && !firstPendingResponse(socket))
    .map((socket) => ({ socket, bytesRead: socket.bytesRead }));
}

function isOwedNothing(socket: Socket): boolean {
  return firstPendingResponse(socket)?.req.complete !== true;
}
