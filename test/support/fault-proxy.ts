import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

import { freePort } from './free-port.js';
import { ProxyDirection } from './proxy-direction.js';
import { resetSocket } from './reset-socket.js';

/** Starts a proxy to a port of 127.0.0.1 that passes everything on until the test changes it. */
export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  for (;;) {
    const proxy = new FaultProxy(await freePort(), targetPort);
    try {
      await proxy.accept();
      return proxy;
    } catch (error) {
      // Another process took the port in between.
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

/** A TCP proxy that simulates a failing network between a replica and Redis. */
export class FaultProxy {
  readonly url: string;
  readonly toServer = new ProxyDirection();
  readonly toClient = new ProxyDirection();
  readonly #listener: Server;
  readonly #sockets = new Set<Socket>();
  #accepted = 0;

  constructor(
    readonly port: number,
    targetPort: number,
  ) {
    this.url = `redis://127.0.0.1:${port}`;
    this.#listener = createServer({ allowHalfOpen: true }, (client) => {
      this.#accepted += 1;
      const server = connect({ host: '127.0.0.1', port: targetPort, allowHalfOpen: true });
      const reset = (): void => {
        for (const socket of [client, server]) resetSocket(socket);
      };
      this.toServer.join(client, server, reset);
      this.toClient.join(server, client, reset);
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.once('close', () => this.#sockets.delete(socket));
      }
    });
  }

  /** The number of connections that clients have made so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Resets every open connection. New ones are accepted as before. */
  cut(): void {
    for (const socket of this.#sockets) resetSocket(socket);
  }

  /** Refuses new connections, and keeps open ones. */
  refuse(): void {
    this.#listener.close();
  }

  /** Accepts new connections again. */
  async accept(): Promise<void> {
    this.#listener.listen(this.port, '127.0.0.1');
    await once(this.#listener, 'listening');
  }

  stop(): void {
    this.refuse();
    this.cut();
  }
}
