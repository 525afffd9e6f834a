import { randomUUID } from 'node:crypto';

import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import {
  type MonitoredCommand,
  type MonitoredServer,
  ServerMonitor,
} from '../../monitor/server-monitor.js';
import { until } from '../../until.js';
import { KeyHistory, type Run } from './key-history.js';

const naming = new KeyNaming('sluice:');

const COMMANDS_KEPT = 1_500_000;
/** Characters of each command. The arguments of a large call say little. */
const CHARACTERS_KEPT = 300;

/**
 * The account of arrivals and grants: what each script did to the keys, in Redis's own order, from MONITOR. It begins
 * before the first check, on one Redis that stays up, so that it misses nothing.
 */
export class ReturningAccount {
  /** All runs of scripts on the keys, in Redis's order. */
  readonly runs: Run[] = [];
  /** The last commands as text: evidence for a violation. */
  readonly commands: string[] = [];
  readonly #histories: ReadonlyMap<string, KeyHistory>;
  readonly #marks = new Set<string>();
  readonly #monitor: ServerMonitor;
  /** The keys that the script under way has met. */
  readonly #met = new Set<KeyHistory>();
  #scriptAt: number | undefined;
  #isAttached = false;
  #gaps = -1;

  private constructor(
    private readonly server: MonitoredServer,
    keys: readonly string[],
  ) {
    this.#histories = new Map(
      keys.map((key) => [naming.namesOf(key).state, new KeyHistory(naming.namesOf(key))]),
    );
    this.#monitor = new ServerMonitor(server, {
      onAttached: () => {
        this.#isAttached = true;
        this.#gaps += 1;
      },
      onLost: () => undefined,
      onCommand: (command) => {
        this.#onCommand(command);
      },
    });
  }

  /** Begins the account, and resolves when nothing is missed any more. */
  static async open(server: MonitoredServer, keys: readonly string[]): Promise<ReturningAccount> {
    const account = new ReturningAccount(server, keys);
    await until(() => account.#isAttached);
    return account;
  }

  /** How often MONITOR was lost, after which nothing is known. */
  get gaps(): number {
    return this.#gaps;
  }

  /** Resolves when everything up to now is recorded. */
  async upToNow(): Promise<void> {
    const mark = randomUUID();
    await this.server.command('ECHO', mark);
    await until(() => this.#marks.has(mark));
  }

  close(): Promise<void> {
    return this.#monitor.close();
  }

  #onCommand(command: MonitoredCommand): void {
    const { at, name, args, isOfScript } = command;
    if (name === 'echo') this.#marks.add(args[0] ?? '');
    if (!isOfScript) this.#endOfScript();
    else if (name === 'time') this.#scriptAt ??= at;
    else this.#follow(command);
    this.#record(
      `${at.toFixed(3)} ${isOfScript ? '  script' : 'client'} ${name} ${args.join(' ')}`,
    );
  }

  #follow(command: MonitoredCommand): void {
    const state = /^[^}]*\}/.exec(command.args[0] ?? '')?.[0] ?? '';
    const history = this.#histories.get(state);
    if (!history) return;
    this.#scriptAt ??= command.at;
    if (!this.#met.has(history)) {
      this.#met.add(history);
      const expired = history.expired(this.#scriptAt);
      if (expired) this.runs.push(expired);
    }
    history.follow(command, this.#scriptAt);
  }

  #endOfScript(): void {
    for (const history of this.#met) this.runs.push(history.endOfScript(this.#scriptAt!));
    this.#met.clear();
    this.#scriptAt = undefined;
  }

  #record(command: string): void {
    this.commands.push(command.slice(0, CHARACTERS_KEPT));
    if (this.commands.length > 2 * COMMANDS_KEPT) this.commands.splice(0, COMMANDS_KEPT);
  }
}
