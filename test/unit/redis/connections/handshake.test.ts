import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

import { pino } from 'pino';

import { connect } from '../../../../src/redis/connections/connect.js';
import { until } from '../../../support/until.js';

/** A commands and a subscriber connection. */
const CLIENTS = 2;

let server: Server;
let accepted: number;
beforeEach(async () => {
  accepted = 0;
  // It accepts connections and answers nothing.
  server = createServer((socket) => {
    accepted += 1;
    socket.on('error', () => undefined).resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => server.close());

test('a connection to a server that does not answer its handshake is ended, and made again', async () => {
  const connections = connect(
    {
      mode: 'standalone',
      urls: [`redis://127.0.0.1:${(server.address() as AddressInfo).port}`],
      timeoutMillis: 20,
      database: 0,
      name: 'test',
    },
    pino({ enabled: false }),
  );
  await until(() => accepted > 2 * CLIENTS);
  await connections.close();
});
