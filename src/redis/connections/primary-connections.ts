import { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { lastErrorOf, logConnection, refusedFor } from './connection-log.js';
import {
  addressIn,
  type ClientOptions,
  clientOptions,
  type ConnectionSettings,
  credentials,
  credentialsIn,
  reconnectAfter,
  REDIS_PORT,
  sharedCredentialsIn,
} from './connection-settings.js';
import { ConnectionSubscriber } from './connection-subscriber.js';
import { type Connections, quit } from './connections.js';
import { isDead, limitHandshake } from './silence.js';

const SENTINEL_PORT = 26_379;
/** The one shard. */
const SHARD = 'primary';
/** The wait is as long as after three failures, since the sentinels are busy with a failover. */
const CONNECT_AGAIN_ATTEMPT = 3;

/** Connects to one primary, at a fixed address or at the one that sentinels give. */
export function connectToPrimary(settings: ConnectionSettings, logger: Logger): Connections {
  const options = {
    ...clientOptions(settings),
    ...(settings.mode === 'sentinel' ? sentinelOptions(settings) : standaloneOptions(settings)),
    db: settings.database,
  };
  const commands = logConnection(new Redis(options), 'commands', logger);
  const subscriptions = logConnection(
    // The subscriber subscribes again itself, because it has to know when that is done.
    new Redis({ ...options, autoResubscribe: false }),
    'subscriber',
    logger,
  );
  let isClosing = false;
  const clients = [commands, subscriptions];
  for (const client of clients) {
    connectAgainAfterEnd(client, () => isClosing);
    limitHandshake(client, 2 * settings.timeoutMillis);
  }
  const onFailover = (): void => {
    for (const client of clients) client.disconnect(true);
  };
  const stopWatching =
    settings.mode === 'sentinel' ? watchForFailovers(settings, onFailover, logger) : undefined;
  const subscriber = new ConnectionSubscriber(subscriptions, settings.timeoutMillis, logger);
  const primaries = new Map([[SHARD, commands]]);
  const renew = (): void => {
    if (commands.status === 'ready') commands.disconnect(true);
  };
  return {
    commands,
    subscriber,
    isCluster: false,
    slotOf: () => 0,
    shardOf: () => SHARD,
    nodeAt: () => commands,
    primaries: () => primaries,
    renew,
    renewIfDead: async () => {
      if (await isDead(commands, settings.timeoutMillis)) renew();
    },
    refresh: () => undefined,
    publish: (channel, message) => commands.publish(channel, message),
    onReady: (callback) => {
      commands.on('ready', callback);
    },
    lastError: lastErrorOf(commands),
    refusedMillis: settings.mode === 'sentinel' ? () => 0 : refusedFor(commands),
    close: async () => {
      isClosing = true;
      subscriber.close();
      settings.stopWatching?.();
      await Promise.all([
        ...clients.map((client) => quit(client, 2 * settings.timeoutMillis)),
        stopWatching?.(),
      ]);
      // QUIT alone does not end an attempt of ioredis 6.0 to find the primary.
      for (const client of clients) client.disconnect();
    },
  };
}

function standaloneOptions(settings: ConnectionSettings): ClientOptions {
  const url = new URL(settings.urls[0] ?? '');
  return { ...addressIn(url, REDIS_PORT), ...credentials(settings, credentialsIn(url)) };
}

function sentinelOptions(settings: ConnectionSettings): ClientOptions {
  const { username, password } = sentinelCredentials(settings);
  return {
    sentinels: sentinelAddresses(settings),
    ...(settings.sentinelMaster !== undefined && { name: settings.sentinelMaster }),
    ...credentials(settings, {}),
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    sentinelRetryStrategy: reconnectAfter,
    sentinelCommandTimeout: settings.timeoutMillis,
    ...(settings.tls && { enableTLSForSentinelMode: true, sentinelTLS: settings.tls }),
  };
}

function sentinelAddresses(settings: ConnectionSettings): { host: string; port: number }[] {
  return settings.urls.map((url) => addressIn(new URL(url), SENTINEL_PORT));
}

function sentinelCredentials(settings: ConnectionSettings): ReturnType<typeof credentials> {
  return credentials(
    { username: settings.sentinelUsername, password: settings.sentinelPassword },
    sharedCredentialsIn(settings.urls.map((url) => new URL(url))),
  );
}

/**
 * If ioredis 6.0 is told to reconnect while it asks sentinels for the primary, it ends the attempt and starts no other.
 * This happens if they announce a failover at that moment.
 */
function connectAgainAfterEnd(client: Redis, isClosing: () => boolean): void {
  client.on('end', () => {
    setTimeout(() => {
      if (isClosing()) return;
      client.connect().catch(() => {
        // A failed attempt ends the connection again, which starts the next attempt, or is logged like any failure.
      });
    }, reconnectAfter(CONNECT_AGAIN_ATTEMPT));
  });
}

/** Its messages begin with the name of the primary that was replaced: https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/#pubsub-messages */
const SWITCHES = '+switch-master';

/**
 * Listens to sentinels for failovers, since the connection to the old primary breaks later, if at all. The failover
 * detector of ioredis 6.0 ends the process if a sentinel does not answer a repeated subscription.
 * @param onFailover called for each sentinel that announces that there is another primary
 * @returns a function that stops it
 */
function watchForFailovers(
  settings: ConnectionSettings,
  onFailover: () => void,
  logger: Logger,
): () => Promise<unknown> {
  const { timeoutMillis, sentinelMaster = '' } = settings;
  const options = {
    ...clientOptions(settings),
    ...sentinelCredentials(settings),
    // The user of a sentinel may lack the permission to set a name.
    connectionName: '',
    enableReadyCheck: false,
    autoResubscribe: false,
  };
  const sentinels = sentinelAddresses(settings).map((address) => {
    const client = limitHandshake(new Redis({ ...options, ...address }), 2 * timeoutMillis);
    logConnection(client, 'sentinel', logger);
    const subscriber = new ConnectionSubscriber(client, timeoutMillis, logger);
    subscriber.listen({
      onMessage: (_channel, message) => {
        if (message.startsWith(`${sentinelMaster} `)) onFailover();
      },
      // Earlier announcements do not matter: each connection to the primary asks the sentinels for it.
      onSubscribed: () => undefined,
    });
    subscriber.subscribe(SWITCHES);
    return { client, subscriber };
  });
  return () => {
    for (const { subscriber } of sentinels) subscriber.close();
    return Promise.all(sentinels.map(({ client }) => quit(client, 2 * timeoutMillis)));
  };
}
