import type { Socket } from 'node:net';

/** The requests that wait on each connection; one listener for all of them. */
const waitingOn = new WeakMap<Socket, Set<AbortController>>();

/**
 * Runs `work` with a signal that aborts when the client's connection closes. The connection is
 * watched and not the response, since the response to a pipelined request has none before its turn.
 */
export async function untilClientLeaves<T>(
  socket: Socket,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  if (socket.destroyed) controller.abort();
  const waiting = waitingOn.get(socket) ?? watch(socket);
  waiting.add(controller);
  try {
    return await work(controller.signal);
  } finally {
    waiting.delete(controller);
  }
}

function watch(socket: Socket): Set<AbortController> {
  const waiting = new Set<AbortController>();
  waitingOn.set(socket, waiting);
  socket.once('close', () => {
    for (const controller of waiting) controller.abort();
  });
  return waiting;
}
