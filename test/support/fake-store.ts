import type { Redis } from 'ioredis';

import type { Connections } from '../../src/redis/connections/connections.js';

/** Connections to a store that does not exist. They record their calls, and answer probes. */
export class FakeStore {
  /** The shards whose connections were given up, in order. */
  readonly renewed: string[] = [];
  /** The shards whose connections were to be given up if they are dead, in order. */
  readonly suspected: string[] = [];
  refreshes = 0;
  /** The commands of the probes, in order. */
  readonly probes: unknown[][] = [];
  /** The last error of the connections. */
  lastError: Error | undefined;
  /** For how many ms connections have been refused. */
  refusedMillis = 0;
  answerProbe: () => Promise<unknown> = () => Promise.resolve(0);
  readonly #onReady: (() => void)[] = [];

  /** The shard of a name is its text before the colon. */
  readonly connections: Connections = {
    commands: {
      setrange: (...command: unknown[]) => {
        this.probes.push(['setrange', ...command]);
        return this.answerProbe();
      },
    } as unknown as Redis,
    shardOf: (name: string) => name.split(':')[0]!,
    renew: (shard: string) => void this.renewed.push(shard),
    renewIfDead: (shard: string) => {
      this.suspected.push(shard);
      return Promise.resolve();
    },
    lastError: () => this.lastError,
    refusedMillis: () => this.refusedMillis,
    refresh: () => void (this.refreshes += 1),
    onReady: (callback: () => void) => void this.#onReady.push(callback),
  } as Partial<Connections> as Connections;

  /** Announces that Redis is ready. */
  becomeReady(): void {
    for (const callback of this.#onReady) callback();
  }
}
