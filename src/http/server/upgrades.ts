import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Serves a request with an `Upgrade` header as any other, which is how a server ignores the header (RFC 9110, section
 * 7.8), and makes its answer end the connection. Node's parser drops the bytes that it has read behind such a request,
 * and takes the next bytes for the start of a request, even if they are the rest of a dropped one.
 */
export function endAtUpgrades(serve: RequestListener): RequestListener {
  const ending = new WeakSet<Socket>();
  return (request, response) => {
    // Node gives a response no connection while it has to wait for an earlier one.
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

/** Without this connection option the header is not for this connection, and the parser ignores it. */
function isUpgrade({ headers: { connection = '' } }: IncomingMessage): boolean {
  return /\bupgrade\b/i.test(connection);
}
