import { Redis } from 'ioredis';
import type { Logger } from 'pino';

import {
  type ClientOptions,
  clientOptions,
  credentials,
  reconnectAfter,
} from './client-options.js';
import { logConnection } from './connection-log.js';
import {
  addressIn,
  type ConnectionSettings,
  credentialsIn,
  REDIS_PORT,
  sharedCredentialsIn,
} from './connection-settings.js';
import type { Connections } from './connections.js';
import { PlainSubscriber } from './plain-subscriber.js';
import { quit } from './quit.js';

const SENTINEL_PORT = 26_379;
/** The wait is that after three failures, since the sentinels are busy with a failover. */
const CONNECT_AGAIN_ATTEMPT = 3;

/** Connects to one primary, at a fixed address or wherever sentinels say that it is now. */
export function connectToPrimary(settings: ConnectionSettings, logger: Logger): Connections {
  const common = clientOptions(settings);
  const options = {
    ...common,
    ...(settings.mode === 'sentinel'
      ? sentinelOptions(settings, common.tls)
      : standaloneOptions(settings)),
    db: settings.database,
  };
  const commands = logConnection(
    new Redis({ ...options, enableAutoPipelining: true }),
    'commands',
    logger,
  );
  const subscriptions = logConnection(
    // The subscriber itself subscribes again, because it has to know when that is done.
    new Redis({ ...options, autoResubscribe: false }),
    'subscriber',
    logger,
  );
  let isClosing = false;
  for (const client of [commands, subscriptions]) {
    connectAgainAfterEnd(client, () => isClosing);
  }
  const subscriber = new PlainSubscriber(subscriptions, settings.timeoutMillis, logger);
  return {
    commands,
    subscriber,
    isCluster: false,
    slotOf: () => 0,
    shardOf: () => 'primary',
    primaries: () => [commands],
    renew: () => {
      if (commands.status === 'ready') commands.disconnect(true);
    },
    refresh: () => undefined,
    publish: (channel, message) => commands.publish(channel, message),
    onReady: (callback) => {
      commands.on('ready', callback);
    },
    get isReady() {
      return commands.status === 'ready';
    },
    close: async () => {
      isClosing = true;
      subscriber.close();
      settings.stopWatching?.();
      await Promise.all([quit(commands), quit(subscriptions)]);
    },
  };
}

function standaloneOptions(settings: ConnectionSettings): ClientOptions {
  const url = new URL(settings.urls[0] ?? '');
  return { ...addressIn(url, REDIS_PORT), ...credentials(settings, credentialsIn(url)) };
}

function sentinelOptions(settings: ConnectionSettings, tls: ClientOptions['tls']): ClientOptions {
  const urls = settings.urls.map((url) => new URL(url));
  const { username, password } = credentials(
    { username: settings.sentinelUsername, password: settings.sentinelPassword },
    sharedCredentialsIn(urls),
  );
  return {
    sentinels: urls.map((url) => addressIn(url, SENTINEL_PORT)),
    ...(settings.sentinelMaster !== undefined && { name: settings.sentinelMaster }),
    ...credentials(settings, {}),
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    sentinelRetryStrategy: reconnectAfter,
    sentinelReconnectStrategy: reconnectAfter,
    sentinelCommandTimeout: settings.timeoutMillis,
    // The sentinels announce a failover. The connection to the old primary breaks later, if at all.
    failoverDetector: true,
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
  };
}

/**
 * ioredis 6.0 gives a connection up for good where sentinels announce a failover while it asks them for the
 * primary: its failover detector then ends the attempt, and no other follows.
 */
function connectAgainAfterEnd(client: Redis, isClosing: () => boolean): void {
  client.on('end', () => {
    setTimeout(() => {
      if (isClosing()) return;
      client.connect().catch(() => {
        // A failed attempt ends the connection again, which makes the next one, or is logged as any failure.
      });
    }, reconnectAfter(CONNECT_AGAIN_ATTEMPT));
  });
}
