import { type Cluster, Command, type Redis } from 'ioredis';

import type { Script } from './script-loader.js';

/** One call of a script. */
export interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

type Send = (
  command: 'evalsha' | 'eval',
  args: [script: string, keys: number, ...(string | number)[]],
) => Promise<unknown>;

/** Sends scripts by their SHA-1, or whole where Redis has forgotten them. */
export class ScriptClient {
  constructor(private readonly client: Redis | Cluster) {}

  /** Shares one write with all calls of this tick of the event loop. ioredis writes in the next tick. */
  sendWithOthers(call: ScriptCall): Promise<unknown> {
    // A cluster's automatic pipelines wait for one another, and fail together when a slot moves.
    if (this.client.isCluster) return this.sendAtOnce(call);
    return run(call, (command, [script, ...rest]) => this.client[command](script, ...rest));
  }

  /**
   * Writes at once a call whose parts have been gathered before. The automatic pipeline of ioredis would
   * wait for another tick. An explicit pipeline would not, but its objects outlive the young generation:
   * a sixth fewer decisions a second, and longer garbage collections.
   */
  sendAtOnce(call: ScriptCall): Promise<unknown> {
    return run(
      call,
      (command, args) =>
        this.client.sendCommand(
          new Command(command, args, { replyEncoding: 'utf8' }),
        ) as Promise<unknown>,
    );
  }
}

/** EVALSHA, or EVAL after SCRIPT FLUSH, a restart or a failover. */
async function run({ script, keys, args }: ScriptCall, send: Send): Promise<unknown> {
  try {
    return await send('evalsha', [script.sha1, keys.length, ...keys, ...args]);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return send('eval', [script.text, keys.length, ...keys, ...args]);
  }
}
