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

/** Sends scripts by their SHA-1, or their text if Redis has forgotten them. */
export class ScriptClient {
  /** The calls that send the text of a script, by script and node. They end when Redis knows the script. */
  readonly #loading = new Map<string, Promise<unknown>>();

  /** @param nodeOf the node that holds a name. Each node has a script cache of its own. */
  constructor(
    private readonly client: Redis | Cluster,
    private readonly nodeOf: (name: string) => string,
  ) {}

  /**
   * Shares one write with all calls of this tick of the event loop. ioredis writes in the next tick.
   * @param isWanted whether anybody still waits for the reply
   */
  sendWithOthers(call: ScriptCall, isWanted: () => boolean): Promise<unknown> {
    // A cluster's automatic pipelines wait for one another, and fail together when a slot moves.
    if (this.client.isCluster) return this.sendAtOnce(call, isWanted);
    return this.#run(call, isWanted, (command, [script, ...rest]) =>
      this.client[command](script, ...rest),
    );
  }

  /**
   * Writes a call at once whose parts were gathered before. The automatic pipeline of ioredis would wait for another
   * tick. An explicit pipeline would not, but its objects outlive the young generation: a sixth fewer decisions a
   * second, and longer garbage collections.
   * @param isWanted whether anybody still waits for the reply
   */
  sendAtOnce(call: ScriptCall, isWanted: () => boolean): Promise<unknown> {
    return this.#run(
      call,
      isWanted,
      (command, args) =>
        this.client.sendCommand(
          new Command(command, args, { replyEncoding: 'utf8' }),
        ) as Promise<unknown>,
    );
  }

  /**
   * Sends EVALSHA. After SCRIPT FLUSH, a restart or a failover thousands of calls may be under way whose script Redis
   * does not know. The first of them sends the script by EVAL. The others wait for it, and are sent again.
   */
  async #run(
    { script, keys, args }: ScriptCall,
    isWanted: () => boolean,
    send: Send,
  ): Promise<unknown> {
    for (;;) {
      try {
        return await send('evalsha', [script.sha1, keys.length, ...keys, ...args]);
      } catch (error) {
        // A call for which nobody waits any more has not run, and must not run.
        if (!isNotKnown(error) || !isWanted()) throw error;
        const node = `${script.sha1} ${this.nodeOf(keys[0] ?? '')}`;
        const loading = this.#loading.get(node);
        if (!loading) {
          const loaded = send('eval', [script.text, keys.length, ...keys, ...args]);
          this.#loading.set(node, loaded);
          return await loaded.finally(() => this.#loading.delete(node));
        }
        // Its own caller handles its error.
        await loading.catch(() => undefined);
        if (!isWanted()) throw error;
      }
    }
  }
}

function isNotKnown(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
