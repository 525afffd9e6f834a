import { once } from 'node:events';
import { createServer } from 'node:net';

/** A port of 127.0.0.1 on which nothing listens. Another program may take it at any time. */
export async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}
