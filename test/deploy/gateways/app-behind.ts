import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that the service behind a gateway has served. */
export interface Served {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A service that records its requests. */
export interface AppBehind {
  /** Its host and port. */
  readonly host: string;
  readonly served: readonly Served[];
  stop(): void;
}

export async function startAppBehind(): Promise<AppBehind> {
  const served: Served[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (data: Buffer) => (body += data.toString()));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      served.push({ method, url, headers, body });
      response.end('served');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    served,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
