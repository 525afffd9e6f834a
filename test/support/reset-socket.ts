import type { Socket } from 'node:net';

/** Closes a connection with a reset, like a failing host, if Node can. */
export function resetSocket(socket: Socket): void {
  // A socket that has just been ended rejects a reset (EINVAL), and would then stay open for ever.
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
