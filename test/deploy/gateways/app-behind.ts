import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

import { killReplicas } from '../../support/replica-process.js';
import { killGateways } from './gateway-process.js';

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
}

interface StartedApp extends AppBehind {
  stop(): void;
}

/**
 * A service behind the gateways of a test file, a new one for each test. After each test it ends, after the gateways and the
 * replicas.
 * @param answer what it answers to a request
 */
export function useAppBehind(answer: (request: Served) => string = () => 'served'): AppBehind {
  let app: StartedApp;
  beforeEach(async () => {
    app = await startApp(answer);
  });
  afterEach(async () => {
    await killGateways();
    await killReplicas();
    app.stop();
  });
  return {
    get host() {
      return app.host;
    },
    get served() {
      return app.served;
    },
  };
}

async function startApp(answer: (request: Served) => string): Promise<StartedApp> {
  const served: Served[] = [];
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (data: Buffer) => (body += data.toString()));
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming;
      const request = { method, url, headers, body };
      served.push(request);
      const text = answer(request);
      if (text.startsWith('{')) response.setHeader('content-type', 'application/json');
      response.end(text);
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
