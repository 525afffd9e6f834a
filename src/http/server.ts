import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Express } from 'express';

import { messageClassesFor } from './message-classes.js';

const IDLE_SWEEP_MILLIS = 20;

/** A listening server, and how to end it without cutting an answer off. */
export interface HttpServer {
  readonly port: number;
  /** Takes no new connection from now on. Resolves when the last has ended. */
  stopAccepting(): Promise<void>;
  /** Ends what connections there are: half-sent requests, clients that never say anything. */
  cutConnections(): void;
}

/**
 * @param port 0 for any that is free
 * @throws the error of listen(2), such as EADDRINUSE
 */
export async function listen(app: Express, port: number, host: string): Promise<HttpServer> {
  const server = createServer(messageClassesFor(app));
  server.on('request', app);
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
    cutConnections: () => {
      server.closeAllConnections();
    },
  };
}

async function stopAccepting(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  // server.close() ends the connections that are idle now; some become idle later.
  const sweep = setInterval(() => {
    server.closeIdleConnections();
  }, IDLE_SWEEP_MILLIS);
  await closed;
  clearInterval(sweep);
}
