import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** The connections on which the body of a request is still to come. */
const receiving = new WeakSet<Duplex>();

/**
 * Reads the body of a request, where it has one, and forgets it. Nobody needs it, but on a connection
 * that is not read nobody hears the client leave, and a request that has not come in full times out.
 */
export function discardBody(request: IncomingMessage): void {
  const { headers, socket } = request;
  const length = headers['content-length'] ?? '0';
  if (length === '0' && headers['transfer-encoding'] === undefined) return;
  receiving.add(socket);
  request.resume().once('end', () => receiving.delete(socket));
}

export function isReceivingBody(socket: Duplex): boolean {
  return receiving.has(socket);
}
