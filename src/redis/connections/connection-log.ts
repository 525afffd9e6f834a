import type { Logger } from 'pino';

import { LookupError } from './host-lookups.js';

/** How often the same reason is logged while a connection is lost. */
const SAME_REASON_MILLIS = 60_000;

interface Watched {
  readonly status: string;
  on(event: 'ready' | 'close', listener: () => void): unknown;
  /** A cluster emits `node error` for one of its nodes. */
  on(event: 'error' | 'node error', listener: (error: Error) => void): unknown;
}

/** Logs each loss and each return of a connection once, and each reason in between once a minute. */
export function logConnection<Client extends Watched>(
  client: Client,
  connection: string,
  logger: Logger,
): Client {
  let lost = false;
  const loggedAt = new Map<string, number>();
  const logReason = (error: Error): void => {
    const { code: reason = error.name } = error as NodeJS.ErrnoException;
    const now = performance.now();
    if (now - (loggedAt.get(reason) ?? -Infinity) < SAME_REASON_MILLIS) return;
    loggedAt.set(reason, now);
    logger.warn({ connection, err: error }, 'redis connection failed');
  };
  client.on('ready', () => {
    if (lost) logger.info({ connection }, 'redis connection restored');
    lost = false;
    loggedAt.clear();
  });
  client.on('error', (error) => {
    logReason(error);
    lost = true;
  });
  client.on('node error', (error) => {
    // The callers report a node that is down.
    if (error instanceof LookupError) logReason(error);
  });
  client.on('close', () => {
    if (!lost && client.status !== 'end') logger.warn({ connection }, 'redis connection lost');
    lost = true;
  });
  return client;
}

/** @returns the last error of a connection, as long as it is lost */
export function lastErrorOf(client: Pick<Watched, 'on'>): () => Error | undefined {
  let last: Error | undefined;
  client.on('ready', () => {
    last = undefined;
  });
  client.on('node error', (error) => {
    last = error;
  });
  client.on('error', (error) => {
    // The error of a cluster says only that no node can be reached.
    const { lastNodeError = error } = error as Error & { lastNodeError?: Error };
    last = lastNodeError;
  });
  return () => last;
}

/**
 * @returns for how many milliseconds each attempt to connect has been refused; 0 if the last one has not been, or none
 *   has failed since the client was ready
 */
export function refusedFor(client: Pick<Watched, 'on'>): () => number {
  let since: number | undefined;
  client.on('ready', () => {
    since = undefined;
  });
  client.on('error', (error: NodeJS.ErrnoException) => {
    since = error.code === 'ECONNREFUSED' ? (since ?? performance.now()) : undefined;
  });
  return () => (since === undefined ? 0 : performance.now() - since);
}
