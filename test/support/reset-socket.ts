import type { Socket } from 'node:net';

/** Closes a connection with a reset, as when a host fails, wherever Node can do it. */
export function resetSocket(socket: Socket): void {
  // One that has just been ended refuses (EINVAL), and then stays open for ever.
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
