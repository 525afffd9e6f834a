import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The connections that wait until some of their requests are answered before more are read. */
const paused = new WeakSet<Duplex>();

/** Stops reading a connection, until `resumeReading`. */
export function pauseReading(socket: Duplex): void {
  if (paused.has(socket)) return;
  paused.add(socket);
  // The end of each of its requests makes Node read on.
  socket.on('resume', pauseAgain);
  socket.pause();
}

/** Reads a connection again that `pauseReading` has stopped. */
export function resumeReading(socket: Duplex): void {
  if (!paused.delete(socket)) return;
  socket.off('resume', pauseAgain);
  socket.resume();
}

/**
 * Whether a connection is not read because of requests that are not answered yet, by `pauseReading` or by Node.
 * The flag is Node's own; a pause within a body does not set it.
 */
export function isHeldUp(socket: Duplex): boolean {
  return paused.has(socket) || (socket as Duplex & { _paused?: boolean })._paused === true;
}

/** The first answer on this connection that is not out. Node has no public name for it. */
export function firstPendingResponse(socket: Duplex): ServerResponse | null | undefined {
  return (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage;
}

function pauseAgain(this: Duplex): void {
  // A stream that was paused since it was told to resume resumes all the same, and is not paused twice.
  if (this.isPaused()) this.emit('pause');
  else this.pause();
}
