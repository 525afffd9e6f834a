import type { Logger } from 'pino';

interface Watched {
  readonly status: string;
  on(event: 'ready' | 'close', listener: () => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** Logs each loss and each return of a connection once, and not the attempts between. */
export function logConnection<Client extends Watched>(
  client: Client,
  connection: string,
  logger: Logger,
): Client {
  let lost = false;
  client.on('ready', () => {
    if (lost) logger.info({ connection }, 'redis connection restored');
    lost = false;
  });
  client.on('error', (error) => {
    if (!lost) logger.warn({ connection, err: error }, 'redis connection failed');
    lost = true;
  });
  client.on('close', () => {
    if (!lost && client.status !== 'end') logger.warn({ connection }, 'redis connection lost');
    lost = true;
  });
  return client;
}
