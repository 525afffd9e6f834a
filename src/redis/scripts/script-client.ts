import { Command } from 'ioredis';
import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { KeysForTime } from '../../common/collections.js';
import type { Ticks } from '../../common/ticks.js';
import {
  classifyFailure,
  NotConnectedError,
  NotWantedError,
} from '../availability/store-errors.js';
import type { Connections } from '../connections/connections.js';
import { probeName } from '../shared/key-names.js';
import { LibraryLoader, type Script } from './script-loader.js';

/** One call of a script. */
export interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  /** The shard that a call without keys is for. */
  readonly shard?: string | undefined;
  /** The call fails if Redis has no memory to run it as a function. By default the script runs then. */
  readonly failsWhenFull?: boolean;
  /** It reads each name before it writes any, so it may run while a cluster moves their slot. */
  readonly readsFirst?: boolean;
}

export interface ScriptClientParts {
  readonly connections: Pick<
    Connections,
    'commands' | 'isCluster' | 'slotOf' | 'shardOf' | 'nodeAt' | 'primaries'
  >;
  readonly ticks: Ticks;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Pick<Logger, 'info'>;
  /** Sends scripts, even if Redis has functions. */
  readonly onlyScripts?: boolean | undefined;
}

/** How long a shard without memory gets scripts. Then it is asked for the function again. */
const FULL_MILLIS = 1000;

const UNKNOWN_FUNCTION = /^ERR Function not found/;
const UNKNOWN_SCRIPT = /^NOSCRIPT\b/;
/** A server before 7.0, one that hides the commands, or a user without the right to them. */
const NO_FUNCTIONS = /^ERR unknown (sub)?command|^NOPERM .*'(fcall|function(\|load)?)' command/i;

/** A command whose words are texts. ioredis would flatten and convert them, which takes as long as a check itself. */
class ScriptCommand extends Command {
  constructor(name: string, words: string[]) {
    super(name, [], { replyEncoding: 'utf8' });
    this.args = words;
  }
}

/**
 * Runs scripts as functions of Redis (7.0 and later, Valkey), whose texts Redis parses once; on other servers by
 * EVALSHA. Gives Redis what it does not know yet, or has forgotten.
 */
export class ScriptClient {
  readonly #libraries: LibraryLoader;
  /** The calls that send the text of a script, by script and shard. They end when Redis knows the script. */
  readonly #evaluating = new Map<string, Promise<unknown>>();
  /** The shards without memory, which get scripts. */
  readonly #full: KeysForTime;
  #callsFunctions: boolean;
  #isAnnounced = false;
  #nextTick: Promise<void> | undefined;

  constructor(private readonly parts: ScriptClientParts) {
    this.#callsFunctions = parts.onlyScripts !== true;
    this.#full = new KeysForTime(FULL_MILLIS, parts.clock);
    this.#libraries = new LibraryLoader(parts.connections);
  }

  /** The command that runs scripts. */
  get operation(): 'FCALL' | 'EVALSHA' {
    return this.#callsFunctions ? 'FCALL' : 'EVALSHA';
  }

  /**
   * Shares one write with all calls of this tick of the event loop.
   * @param isWanted whether anybody still waits for the reply
   */
  async sendWithOthers(call: ScriptCall, isWanted: () => boolean): Promise<unknown> {
    await (this.#nextTick ??= new Promise((resolve) => {
      this.parts.ticks.next(() => {
        this.#nextTick = undefined;
        resolve();
      });
    }));
    return this.sendAtOnce(call, isWanted);
  }

  /**
   * Sends a call now, in one write with what else is sent now.
   * @param isWanted whether anybody still waits for the reply
   */
  sendAtOnce(call: ScriptCall, isWanted: () => boolean): Promise<unknown> {
    return this.#callsFunctions && !this.#isFull(call)
      ? this.#callFunction(call, isWanted)
      : this.#runScript(call, isWanted);
  }

  async #callFunction(call: ScriptCall, isWanted: () => boolean): Promise<unknown> {
    for (;;) {
      try {
        const reply = await this.#send('fcall', call.script.library.name, call, isWanted);
        if (!this.#isAnnounced) this.#announce('Redis runs the scripts as functions');
        return reply;
      } catch (error) {
        if (!isWanted()) throw error;
        const isUnknown = isReplyLike(error, UNKNOWN_FUNCTION);
        const failure = isUnknown ? await this.#load(call) : (error as Error);
        if (failure === undefined) continue;
        if (!this.#turnsToScripts(call, failure, isUnknown)) throw failure;
        return await this.#runScript(call, isWanted);
      }
    }
  }

  /** @returns Redis's error; undefined if it has the function now, or if the connection broke, as a call finds out */
  async #load(call: ScriptCall): Promise<Error | undefined> {
    try {
      await this.#libraries.load(call.script.library, this.#shardOf(call));
      return undefined;
    } catch (error) {
      return classifyFailure(error) === 'unknown' ? undefined : (error as Error);
    }
  }

  /** Decides whether a script runs where the function could not. @param isOfLoad the library could not be loaded */
  #turnsToScripts(call: ScriptCall, error: unknown, isOfLoad: boolean): boolean {
    const failure = classifyFailure(error);
    if (failure === 'full') {
      // Redis runs no function without memory. It runs a script up to its first write that takes memory.
      this.#full.add(this.#shardOf(call));
      return call.failsWhenFull !== true;
    }
    if (!isReplyLike(error, NO_FUNCTIONS) && !(isOfLoad && failure === 'fault')) return false;
    this.#callsFunctions = false;
    this.#announce('Redis runs the scripts by EVALSHA', error);
    return true;
  }

  /**
   * Sends EVALSHA. After SCRIPT FLUSH, a restart or a failover thousands of calls may be under way whose script Redis
   * does not know. The first of them sends the script by EVAL. The others wait for it, and are sent again.
   */
  async #runScript(call: ScriptCall, isWanted: () => boolean): Promise<unknown> {
    const { script } = call;
    for (;;) {
      try {
        return await this.#send('evalsha', script.sha1, call, isWanted);
      } catch (error) {
        if (!isReplyLike(error, UNKNOWN_SCRIPT) || !isWanted()) throw error;
        const pair = `${script.sha1} ${this.#shardOf(call)}`;
        const evaluating = this.#evaluating.get(pair);
        if (!evaluating) {
          const evaluated = this.#send('eval', script.text, call, isWanted);
          this.#evaluating.set(pair, evaluated);
          return await evaluated.finally(() => this.#evaluating.delete(pair));
        }
        // Its own caller handles its error.
        await evaluating.catch(() => undefined);
      }
    }
  }

  /**
   * The only way to Redis. A call for which nobody waits any more must not run, however often it was sent before: its
   * withdrawal may be on its way already, or may have run.
   *
   * While a cluster moves a slot, Redis begins a script there if it finds all its KEYS, and then refuses a write to a name
   * that is not there, in the midst of the script. A name that is never there keeps scripts from beginning.
   */
  #send(
    command: 'fcall' | 'evalsha' | 'eval',
    id: string,
    { script, keys: names, args, shard, readsFirst = false }: ScriptCall,
    isWanted: () => boolean,
  ): Promise<unknown> {
    if (!isWanted()) return Promise.reject(new NotWantedError());
    const { connections } = this.parts;
    const [first] = names;
    const isWhole = !connections.isCluster || !script.mayWrite || readsFirst || first === undefined;
    const keys = isWhole ? names : [...names, probeName(first)];
    const client = shard === undefined ? connections.commands : connections.nodeAt(shard);
    if (!client) return Promise.reject(new NotConnectedError(`no connection to ${shard}`));
    const words = [id, `${keys.length}`, ...keys];
    for (const arg of args) words.push(`${arg}`);
    return client.sendCommand(new ScriptCommand(command, words)) as Promise<unknown>;
  }

  #shardOf({ keys, shard }: ScriptCall): string {
    return shard ?? this.parts.connections.shardOf(keys[0] ?? '');
  }

  #isFull(call: ScriptCall): boolean {
    return !this.#full.isEmpty && this.#full.has(this.#shardOf(call));
  }

  #announce(message: string, reason?: unknown): void {
    this.#isAnnounced = true;
    this.parts.logger.info(reason instanceof Error ? { reason: reason.message } : {}, message);
  }
}

function isReplyLike(error: unknown, pattern: RegExp): boolean {
  return error instanceof Error && error.name === 'ReplyError' && pattern.test(error.message);
}
