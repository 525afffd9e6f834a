import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Serves a request with an `Upgrade` as any other, which is how a server ignores it (RFC 9110, section 7.8), and has its
 * answer end the connection. Node's parser drops what it has read behind such a request, and takes the next bytes for
 * the start of a request, even if they are the rest of one that it dropped.
 */
export function endAtUpgrades(serve: Serve): Serve {
  const ending = new WeakSet<Socket>();
  return (request, response) => {
    // Node has given a response no connection if it has to wait for an earlier one.
    if (response.socket === null && ending.has(request.socket)) {
      request.resume();
      return;
    }
    if (request.headers.upgrade !== undefined && isUpgrade(request)) {
      ending.add(request.socket);
      response.shouldKeepAlive = false;
    }
    serve(request, response);
  };
}

/** Without this option the header is not for this connection, and the parser passes over it. */
function isUpgrade({ headers: { connection = '' } }: IncomingMessage): boolean {
  return /\bupgrade\b/i.test(connection);
}
