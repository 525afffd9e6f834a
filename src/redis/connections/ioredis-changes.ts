import { lookup as lookUpByNode } from 'node:dns/promises';
import { connect, type LookupFunction, type Socket } from 'node:net';
import { connect as connectByTls } from 'node:tls';

import { Redis, SentinelConnector } from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';
import { DEFAULT_REDIS_OPTIONS } from 'ioredis/built/redis/RedisOptions.js';

import { HostLookups } from './host-lookups.js';

/**
 * Makes all commands that are sent on a connection in one go of the event loop travel in one write. ioredis writes each
 * command by itself, and its automatic pipelines make the commands of a cluster's node wait for one another, and fail
 * together when one slot has moved.
 */
function shareWrites(socket: Socket): void {
  const write: Socket['write'] = socket.write.bind(socket);
  let isCorked = false;
  const uncork = (): void => {
    isCorked = false;
    socket.uncork();
  };
  socket.write = ((...args: Parameters<Socket['write']>) => {
    if (!isCorked) {
      isCorked = true;
      socket.cork();
      // After the callback that runs now, with all that it sends.
      process.nextTick(uncork);
    }
    return write(...args);
  }) as Socket['write'];
}

// What Sluice changes in ioredis 6. Sentinels and clusters create clients of their own, so no option and no event reaches
// all clients. The changes:
// - Host names are looked up by HostLookups.
// - A socket may fail more than once. ioredis listens for the first error of each only. A socket that is ended during
//   its TLS handshake has a second one, which would end the process without a listener.
// - An ASKING may fail. ioredis awaits none, and an unhandled rejection ends the process. A topology that does not have
//   a new node yet closes the connection to it while calls for its moving slot are under way.
// - A sentinel that can't be reached says why.
// - All commands of one go of the event loop share a write (`shareWrites`).
// - No client tells its name and version by CLIENT SETINFO. A user with few rights would need a rule for it, which
//   servers before Redis 7.2 don't know.

DEFAULT_REDIS_OPTIONS.disableClientInfo = true;

/** A look-up gets a quarter of the time to connect, and no more than this. */
const LONGEST_LOOKUP_MILLIS = 250;
/** The message of a client that gives no reason for its failure. */
const CLOSED = 'Connection is closed.';

type OnEvent = (type: string, error: Error) => void;

/** What the types of ioredis hide of its connectors. */
interface Connector {
  readonly options: {
    readonly host?: string;
    readonly port?: number;
    readonly family?: number;
    readonly tls?: object;
    readonly connectTimeout?: number;
  };
  connecting: boolean;
  stream: Socket;
  firstError?: Error;
  connect: (this: Connector, onEvent: OnEvent) => Promise<Socket>;
}

interface ConnectorBySentinels extends Omit<Connector, 'connect'> {
  /** Added here: the listener for errors, and the last error of the client of a sentinel. */
  onEvent: OnEvent;
  sentinelError: Error | undefined;
  connect: (this: ConnectorBySentinels, onEvent: OnEvent) => Promise<Socket>;
  resolve: (this: ConnectorBySentinels, sentinel: object) => Promise<object | null>;
  connectToSentinel: (this: ConnectorBySentinels, sentinel: object, options?: object) => Redis;
}

/** A client, with its method for the command ASKING. */
interface Asker {
  asking: (this: Asker, callback?: () => void) => Promise<unknown>;
}

const lookups = new HostLookups((name, options) => lookUpByNode(name, { ...options, all: true }));
const ignore = (): void => undefined;

function lookupFor({ options }: Pick<Connector, 'options'>, onEvent: OnEvent): LookupFunction {
  const { connectTimeout = Infinity } = options;
  return lookups.for(Math.min(connectTimeout / 4, LONGEST_LOOKUP_MILLIS), (failure) =>
    onEvent('error', failure),
  );
}

function isGivenUp({ connecting }: Connector): boolean {
  return !connecting;
}

const client = Redis.prototype as unknown as Asker;
const { asking } = client;
client.asking = function (callback) {
  const asked = asking.call(this, callback);
  asked.catch(ignore);
  return asked;
};

const standalone = StandaloneConnector.prototype as unknown as Connector;
const bySentinels = SentinelConnector.prototype as unknown as ConnectorBySentinels;
const { connect: connectBySentinels, resolve, connectToSentinel } = bySentinels;

// Like the original, which takes no look-up.
standalone.connect = async function (onEvent) {
  this.connecting = true;
  await new Promise<void>((goOn) => process.nextTick(goOn));
  if (isGivenUp(this)) throw new Error(CLOSED);
  const { host = 'localhost', port = 6379, family = 0, tls } = this.options;
  const target = { host, port, family, lookup: lookupFor(this, onEvent) };
  const socket = tls ? connectByTls({ ...target, ...tls }) : connect(target);
  this.stream = socket;
  socket.once('error', (error: Error) => {
    this.firstError = error;
  });
  socket.on('error', ignore);
  shareWrites(socket);
  return socket;
};

bySentinels.connect = async function (onEvent) {
  this.onEvent = onEvent;
  const socket = await connectBySentinels.call(this, onEvent);
  socket.on('error', ignore);
  shareWrites(socket);
  return socket;
};

bySentinels.resolve = async function (sentinel) {
  try {
    const primary = await resolve.call(this, sentinel);
    // ioredis passes the returned options on to net or tls.
    return primary && { ...primary, lookup: lookupFor(this, this.onEvent) };
  } catch (error) {
    throw this.sentinelError ?? error;
  }
};

bySentinels.connectToSentinel = function (sentinel, options) {
  this.sentinelError = undefined;
  const client = connectToSentinel.call(this, sentinel, options);
  client.on('error', (error) => {
    this.sentinelError = error;
  });
  return client;
};
