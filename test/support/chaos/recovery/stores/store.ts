import type { RedisProcess } from '../../../redis-process.js';

/** Redis behind the replica of a cell. It fails over when it is told to, and not for a stall. */
export interface Store {
  /** Every server that may hold keys. */
  readonly servers: readonly RedisProcess[];
  /** The settings by which a replica finds it. */
  readonly settings: Readonly<Record<string, string>>;
  /** The servers that hold keys now. If a key has none, this waits for one. */
  primaries(): Promise<readonly RedisProcess[]>;
  /** Resolves when every key can be written. */
  takesWrites(): Promise<void>;
  /** Undefined where no other server can take over. */
  readonly failOver: (() => Promise<void>) | undefined;
  /** Resolves when all servers serve, and agree on who does what. */
  mend(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Has a server write every command to its file before it answers, also after a restart. No sync: what a killed process
 * has written, the system keeps.
 */
export async function keepData(server: RedisProcess): Promise<void> {
  await server.command('CONFIG', 'SET', 'appendfsync', 'no');
  await server.command('CONFIG', 'SET', 'appendonly', 'yes');
  await server.command('CONFIG', 'REWRITE');
}
