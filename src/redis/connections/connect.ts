import './ioredis-changes.js';
import type { Logger } from 'pino';

import { connectToCluster } from './cluster-connections.js';
import type { ConnectionSettings } from './connection-settings.js';
import type { Connections } from './connections.js';
import { connectToPrimary } from './primary-connections.js';

/** Connects as the settings say; returns before the connections are made. */
export function connect(settings: ConnectionSettings, logger: Logger): Connections {
  return settings.mode === 'cluster'
    ? connectToCluster(settings, logger)
    : connectToPrimary(settings, logger);
}

/** Resolves when Redis is reachable, or after `timeoutMillis`. */
export async function waitUntilReady(
  { commands }: Connections,
  timeoutMillis: number,
): Promise<void> {
  if (commands.status === 'ready') return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, timeoutMillis);
    commands.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
