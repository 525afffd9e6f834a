import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The connections that are not read until some of their requests are answered. */
const paused = new WeakSet<Duplex>();

/** The connections that are read again from the next tick on. */
const resumed = new WeakMap<Duplex, NodeJS.Immediate>();

/** Stops reading a connection, until `resumeReading`. */
export function pauseReading(socket: Duplex): void {
  if (paused.has(socket)) return;
  paused.add(socket);
  // Node resumes reading at the end of each request.
  socket.on('resume', pauseAgain);
  socket.pause();
}

export function resumeReading(socket: Duplex): void {
  if (!paused.delete(socket)) return;
  socket.off('resume', pauseAgain);
  socket.resume();
  // An earlier end of a pause may still wait for its tick.
  clearImmediate(resumed.get(socket));
  resumed.set(
    socket,
    setImmediate(() => resumed.delete(socket)),
  );
}

/**
 * Whether a connection is not read because of unanswered requests, by `pauseReading` or by Node, or has not been since. The
 * flag is Node's own; a pause within a body does not set it.
 */
export function isUnread(socket: Duplex): boolean {
  if (paused.has(socket) || resumed.has(socket)) return true;
  return (socket as Duplex & { _paused?: boolean })._paused === true;
}

/**
 * Whether the client of a connection has disconnected, so that no answer can be written. Node ends a connection when its
 * client ends the sending side, and destroys it a few ticks later: what is written in between is lost.
 */
export function hasDisconnected(socket: Duplex): boolean {
  return !socket.writable;
}

/** The first answer on this connection that has not gone out. Node has no public name for it. */
export function firstPendingResponse(socket: Duplex): ServerResponse | null | undefined {
  return (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage;
}

function pauseAgain(this: Duplex): void {
  // A stream that was paused after a call of resume() still resumes, and a second pause() has no effect.
  if (this.isPaused()) this.emit('pause');
  else this.pause();
}
