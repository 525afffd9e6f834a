import { setTimeout as delay } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import type { ClientOptions } from '../redis-process.js';

const RETRY_MILLIS = 20;

/** A server to watch, such as a `RedisProcess`. */
export interface MonitoredServer {
  readonly address: string;
  /** Opens a connection as a user that may do everything. */
  connect(options: ClientOptions): Redis;
  command(...command: readonly [string, ...(string | number)[]]): Promise<unknown>;
}

/** A command in MONITOR. */
export interface MonitoredCommand {
  /** When it ran, in milliseconds since 1970. */
  readonly at: number;
  /** Whether a script on this server sent it, and not a client or a primary. */
  readonly isOfScript: boolean;
  /** In lower case. */
  readonly name: string;
  readonly args: readonly string[];
}

export interface MonitorEvents {
  /** From now on every command is reported. */
  onAttached(): void;
  onCommand(command: MonitoredCommand): void;
  /** From now on commands may be missed. Some of the last ones may already be missing. */
  onLost(): void;
}

/**
 * MONITOR on one server, started again whenever the connection ends.
 * https://redis.io/docs/latest/commands/monitor/
 */
export class ServerMonitor {
  #isClosed = false;
  #close: () => void = () => undefined;
  readonly #done: Promise<void>;

  constructor(
    private readonly server: MonitoredServer,
    private readonly events: MonitorEvents,
  ) {
    this.#done = this.#keepAttached();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#close();
    await this.#done;
  }

  async #keepAttached(): Promise<void> {
    while (!this.#isClosed) {
      await this.#attachOnce();
      await delay(RETRY_MILLIS);
    }
  }

  /** Resolves when the connection has ended. */
  async #attachOnce(): Promise<void> {
    const connection = this.server.connect({
      monitor: true,
      lazyConnect: true,
      retryStrategy: null,
      enableReadyCheck: false,
    });
    let isAttached = false;
    let hasFailed = false;
    // Also if the server rejects MONITOR, for example while it loads its data. ioredis takes a command for an error if it comes
    // in one piece with the reply to MONITOR, and says after that that it is monitoring.
    connection.on('error', () => {
      hasFailed = true;
      connection.disconnect();
    });
    connection.on('monitoring', () => {
      if (hasFailed) return;
      isAttached = true;
      this.events.onAttached();
    });
    connection.on('monitor', (time: string, [name = '', ...args]: string[], source: string) => {
      if (hasFailed) return;
      this.events.onCommand({
        at: Number(time) * 1000,
        isOfScript: source === 'lua',
        name: name.toLowerCase(),
        args,
      });
    });
    this.#close = () => {
      connection.disconnect();
    };
    // Not `once`, which rejects at the first error.
    const ended = new Promise<void>((resolve) => {
      connection.on('end', () => {
        if (isAttached) this.events.onLost();
        resolve();
      });
    });
    connection.connect().catch(() => undefined);
    await ended;
  }
}
