import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The first answer on this connection that is not out. Node has no public name for it. */
export function firstPendingResponse(socket: Duplex): ServerResponse | null | undefined {
  return (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage;
}
