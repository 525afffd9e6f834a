import type { Socket } from 'node:net';

/**
 * Makes all commands that are sent on a connection in one go of the event loop travel in one write. ioredis writes each
 * command by itself, and its automatic pipelines make the commands of a cluster's node wait for one another, and fail
 * together when one slot has moved.
 */
export function shareWrites(socket: Socket): void {
  const write: Socket['write'] = socket.write.bind(socket);
  let isCorked = false;
  const uncork = (): void => {
    isCorked = false;
    socket.uncork();
  };
  socket.write = ((...args: Parameters<Socket['write']>) => {
    if (!isCorked) {
      isCorked = true;
      socket.cork();
      // After the callback that runs now, with all that it sends.
      process.nextTick(uncork);
    }
    return write(...args);
  }) as Socket['write'];
}
