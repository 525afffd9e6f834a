import { randomUUID } from 'node:crypto';

import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { until } from '../until.js';
import {
  KeyAccount,
  type KeyAccountBounds,
  keysOfSnapshot,
  type ObservedApproval,
  type ObservedLimits,
  parseSnapshot,
  type Snapshot,
  SNAPSHOT_SCRIPT,
} from './key-account.js';
import { type MonitoredCommand, type MonitoredServer, ServerMonitor } from './server-monitor.js';

const naming = new KeyNaming('sluice:');

const COMMANDS_KEPT = 1_500_000;
/** Characters of each command. The arguments of a large call say little. */
const CHARACTERS_KEPT = 300;
/** These change nothing, and are most of all commands. */
const READS = new Set(
  'time hmget hgetall hvals hlen lrange lindex llen smismember sismember scard exists zcard zrange zscore zlexcount'.split(
    ' ',
  ),
);

/** A span of time in which commands of a server may have been missed. */
interface Gap {
  readonly from: number;
  /** Infinite while the gap lasts. */
  to: number;
}

/**
 * All changes of the scripts to some limiter keys, on all servers that have held the keys. They are read from
 * MONITOR, so windows and order are Redis's own.
 */
export class RedisAccount {
  readonly violations: string[] = [];
  /** By request id. A request has several approvals if an earlier one expired unnoticed with its window. */
  readonly approvals = new Map<string, ObservedApproval[]>();
  /** The last ticket of each request that has had a place in a queue. */
  readonly tickets = new Map<string, number>();
  /** The lane or group of each of these; '' for none. */
  readonly lists = new Map<string, string>();
  /** All changes of limits by scripts. */
  readonly limits: (ObservedLimits & { readonly key: string })[] = [];
  readonly gaps: Gap[] = [];
  /** The last commands on these keys as text: evidence for a violation. */
  readonly commands: string[] = [];
  /** How often scripts approved while the whole state on the server was known. */
  judged = 0;
  readonly #servers: ServerAccount[];

  constructor(
    servers: readonly MonitoredServer[],
    keys: readonly string[],
    bounds: KeyAccountBounds,
  ) {
    this.#servers = servers.map((server) => new ServerAccount(server, keys, bounds, this));
  }

  /** How many of a key's approvals count in its window, on all servers. */
  inWindow(key: string): number {
    return this.#servers.reduce((sum, server) => sum + server.inWindow(key), 0);
  }

  /** Resolves when everything up to now is recorded. */
  async upToNow(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.upToNow()));
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  record(command: string): void {
    this.commands.push(command);
    if (this.commands.length > 2 * COMMANDS_KEPT) this.commands.splice(0, COMMANDS_KEPT);
  }

  wasWatched(from: number, to: number): boolean {
    return !this.gaps.some((gap) => gap.from <= to && gap.to >= from);
  }
}

/** Commands that wait for the reply to a snapshot. */
type Waiting = MonitoredCommand[];

/** Follows each key on one server. */
class ServerAccount {
  readonly #monitor: ServerMonitor;
  readonly #accounts: { readonly key: string; readonly account: KeyAccount }[];
  /** Keys with a snapshot under way, by the mark that shows when it was read. */
  readonly #snapshots = new Map<string, KeyAccount>();
  /** Commands after a snapshot was read, and before its reply. */
  readonly #waiting = new Map<KeyAccount, Waiting>();
  readonly #marks = new Set<string>();
  #lastAt = Date.now();
  #gap: Gap;

  constructor(
    private readonly server: MonitoredServer,
    keys: readonly string[],
    bounds: KeyAccountBounds,
    private readonly whole: RedisAccount,
  ) {
    this.#accounts = keys.map((key) => ({
      key,
      account: new KeyAccount(naming.namesOf(key), bounds, {
        onApproved: (approval) => {
          const others = whole.approvals.get(approval.id);
          if (others) others.push(approval);
          else whole.approvals.set(approval.id, [approval]);
        },
        onJoined: (id, ticket, list) => {
          whole.tickets.set(id, ticket);
          whole.lists.set(id, list);
        },
        onLimits: (limits) => whole.limits.push({ key, ...limits }),
        onViolation: (violation) => whole.violations.push(`${violation}, on ${server.address}`),
      }),
    }));
    this.#gap = this.#openGap();
    this.#monitor = new ServerMonitor(server, {
      onAttached: () => {
        this.#gap.to = Date.now();
      },
      onLost: () => {
        this.#gap = this.#openGap();
        this.#forget();
      },
      onCommand: (command) => {
        this.#onCommand(command);
      },
    });
  }

  inWindow(key: string): number {
    return this.#accounts.find((each) => each.key === key)?.account.inWindow ?? 0;
  }

  async upToNow(): Promise<void> {
    const mark = randomUUID();
    await until(async () => {
      // Sent again, since the monitor may have been connecting.
      await this.server.command('ECHO', mark);
      return this.#marks.has(mark) && this.#snapshots.size === 0;
    });
  }

  close(): Promise<void> {
    return this.#monitor.close();
  }

  #openGap(): Gap {
    // Clients record times in whole milliseconds.
    const gap = { from: Math.floor(this.#lastAt), to: Infinity };
    this.whole.gaps.push(gap);
    return gap;
  }

  #forget(): void {
    this.#snapshots.clear();
    this.#waiting.clear();
    for (const { account } of this.#accounts) account.doubt();
  }

  #onCommand(command: MonitoredCommand): void {
    this.#lastAt = command.at;
    const last = command.args.at(-1) ?? '';
    if (command.name === 'echo') this.#marks.add(last);
    const read = this.#snapshots.get(last);
    if (read && command.name === 'eval_ro') {
      read.endOfScript();
      this.#waiting.set(read, []);
    }
    for (const { account } of this.#accounts) this.#tell(account, command);
    if (READS.has(command.name)) return;
    const source = command.isOfScript ? '  script' : 'client';
    const text = `${this.server.address} ${command.at.toFixed(3)} ${source} ${command.name} ${command.args.join(' ')}`;
    this.whole.record(text.slice(0, CHARACTERS_KEPT));
  }

  #tell(account: KeyAccount, command: MonitoredCommand): void {
    const waiting = this.#waiting.get(account);
    if (waiting) waiting.push(command);
    else if (command.isOfScript) this.#follow(account, command);
    else this.#onCommandOfOthers(account, command);
  }

  #onCommandOfOthers(account: KeyAccount, command: MonitoredCommand): void {
    account.endOfScript();
    if (account.isChangedBy(command)) account.doubt();
  }

  #follow(account: KeyAccount, command: MonitoredCommand): void {
    account.follow(command);
    if (!account.isChangedBy(command)) return;
    if (account.isKnown) this.whole.judged += command.name === 'sadd' ? 1 : 0;
    else if (![...this.#snapshots.values()].includes(account)) void this.#readState(account);
  }

  async #readState(account: KeyAccount): Promise<void> {
    const mark = randomUUID();
    this.#snapshots.set(mark, account);
    const names = keysOfSnapshot(account.names);
    let snapshot: Snapshot | undefined;
    try {
      snapshot = parseSnapshot(
        await this.server.command('EVAL_RO', SNAPSHOT_SCRIPT, names.length, ...names, mark),
      );
      await until(() => this.#waiting.has(account) || !this.#snapshots.has(mark));
    } catch {
      // The server has gone, or the key has.
    }
    // There is no snapshot any more if the connection has been lost in the meantime.
    if (!this.#snapshots.delete(mark)) return;
    const waiting = this.#waiting.get(account) ?? [];
    this.#waiting.delete(account);
    if (snapshot) account.adopt(snapshot);
    for (const command of waiting) this.#tell(account, command);
  }
}
