import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A listening server, and how to end it without cutting an answer off. */
export interface HttpServer {
  readonly port: number;
  /** Stops accepting. Resolves when every connection has ended. */
  stopAccepting(): Promise<void>;
}

/**
 * @param port 0 for any that is free
 * @throws the error of listen(2), such as EADDRINUSE
 */
export async function listen(
  listener: RequestListener,
  port: number,
  host: string,
): Promise<HttpServer> {
  const server = createServer();
  server.on('request', listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    stopAccepting: () => stopAccepting(server),
  };
}

async function stopAccepting(server: Server): Promise<void> {
  // A client that would keep its connection is told to go elsewhere next.
  server.prependListener('request', (_request, response) => {
    response.setHeader('Connection', 'close');
  });
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
}
