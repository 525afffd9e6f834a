import { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { backoffMillis } from './backoff.js';

const FIRST_RETRY_MILLIS = 10;

/** The two connections of a replica: Redis keeps commands and subscriptions apart. */
export interface Connections {
  readonly commands: Redis;
  readonly subscriber: Redis;
}

export interface ConnectionSettings {
  /** `redis://` or `rediss://`, with credentials and database as ioredis reads them. */
  readonly url: string;
  /** The longest a command may take. */
  readonly timeoutMillis: number;
  /** Shown by CLIENT LIST. */
  readonly name: string;
}

/**
 * Connects, and reconnects for ever. Nothing is queued while Redis can't be reached: a call then
 * fails at once, and whoever made it decides what that means.
 */
export function connect(settings: ConnectionSettings, logger: Logger): Connections {
  const options = {
    connectionName: settings.name,
    connectTimeout: settings.timeoutMillis,
    commandTimeout: settings.timeoutMillis,
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    retryStrategy: (attempt: number) => backoffMillis(attempt, FIRST_RETRY_MILLIS),
  };
  return {
    commands: watch(new Redis(settings.url, options), 'commands', logger),
    // The wake channel subscribes again by itself, because it has to know when that is done.
    subscriber: watch(
      new Redis(settings.url, { ...options, autoResubscribe: false }),
      'subscriber',
      logger,
    ),
  };
}

/** Logs each loss and each return of a connection once, however many attempts lie between. */
function watch(client: Redis, connection: string, logger: Logger): Redis {
  let lost = false;
  client.on('ready', () => {
    if (lost) logger.info({ connection }, 'redis connection restored');
    lost = false;
  });
  client.on('error', (error: Error) => {
    if (!lost) logger.warn({ connection, err: error }, 'redis connection failed');
    lost = true;
  });
  client.on('close', () => {
    if (!lost && client.status !== 'end') logger.warn({ connection }, 'redis connection lost');
    lost = true;
  });
  return client;
}

/** Resolves when Redis can be asked, or after `timeoutMillis`. */
export async function waitUntilReady(client: Redis, timeoutMillis: number): Promise<void> {
  if (client.status === 'ready') return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      client.off('ready', end);
      resolve();
    };
    const timer = setTimeout(end, timeoutMillis);
    client.on('ready', end);
  });
}

/** Ends both connections once what was sent has been answered. */
export async function disconnect({ commands, subscriber }: Connections): Promise<void> {
  await Promise.all(
    [commands, subscriber].map(async (client) => {
      try {
        await client.quit();
      } catch {
        // Not connected, so there is nobody to say goodbye to.
        client.disconnect();
      }
    }),
  );
}
