import type { CallGuard } from '../availability/call-guard.js';
import type { Answer, RequestTrace } from '../../limiter/limiter.js';
import type { KeyNames } from '../shared/key-names.js';
import { CheckCalls } from './check-calls.js';
import type { CheckBatch, CheckBatchReply } from './check-codec.js';
import {
  type Confirmed,
  decodeConfirmed,
  decodeNotRenewed,
  decodeWithdrawn,
  encodeKeyClaims,
  encodeRenewal,
  inSeveralCalls,
  type KeyClaims,
  keysToRenew,
  type LeasedPlaces,
  replyForEach,
} from './several-keys.js';
import {
  decodeHolders,
  decodeInstances,
  decodeStatuses,
  type InspectReply,
  keysOfHolders,
  keysToInspect,
  type PageOfHolds,
  type Statuses,
} from './looks-codec.js';
import { type AskedOfKey, type Row, ROWS, type ScriptedOperation } from './operations.js';
import { type ScriptCall, ScriptClient, type ScriptClientParts } from './script-client.js';
import { type FunctionFlag, loadScript, type Replacements, type Script } from './script-loader.js';
import {
  decodeSettleReply,
  encodeSettle,
  type KnownWindow,
  type SettleReply,
  type Ticket,
} from './settle-codec.js';
import {
  type CallerSettings,
  keysOf,
  sendWithCalendars,
  sharedArguments,
} from './shared-arguments.js';

export interface ScriptSettings extends CallerSettings {
  /** Lua fragments instead of files, see {@link loadScript}. */
  readonly replacements?: Replacements | undefined;
}

type Guard = Pick<CallGuard, 'run'>;

/** The script calls for waiters. */
export type WaitingStore = Pick<Scripts, 'settle' | 'renew' | 'withdraw' | 'confirm' | 'statuses'>;

interface RunOptions {
  /** The amount of work. Default: 1. */
  readonly size?: number;
  /** Whether its success shows that Redis accepts writes. Default: unless the script never writes. */
  readonly isWrite?: boolean;
  readonly isRepeatable?: boolean;
  readonly traces?: readonly RequestTrace[] | undefined;
}

/** The flags of each script as a function. */
export const SCRIPTS = {
  check: ['allow-cross-slot-keys'],
  ...{ settle: [], renew: [], release: [], amend: [], pause: [], remaining: [], refund: [] },
  ...{ withdraw: [], confirm: [], report: [] },
  inspect: ['no-writes'],
  examine: ['no-writes'],
  peek: ['no-writes'],
  status: ['no-writes'],
  holders: ['no-writes'],
} as const satisfies Readonly<Record<string, readonly FunctionFlag[]>>;

type ScriptName = keyof typeof SCRIPTS;

/**
 * One typed function for each script in `lua/`, which describes KEYS, ARGV and replies.
 * Each rejects with a StoreUnavailableError if Redis is unreachable or does not answer in time.
 */
export class Scripts {
  readonly #client: ScriptClient;
  readonly #operation = () => this.#client.operation;
  readonly #checks: CheckCalls;
  readonly #scripts: Readonly<Record<ScriptName, Script>>;

  constructor(
    client: ScriptClientParts,
    private readonly guard: Guard,
    private readonly settings: ScriptSettings,
  ) {
    this.#client = new ScriptClient(client);
    const loaded = Object.entries(SCRIPTS).map(
      ([name, flags]) => [name, loadScript(name, settings.replacements, flags)] as const,
    );
    this.#scripts = Object.fromEntries(loaded) as Record<ScriptName, Script>;
    this.#checks = new CheckCalls({
      script: this.#scripts.check,
      client: this.#client,
      connections: client.connections,
      clock: client.clock,
      settings,
      operation: this.#operation,
      run: (call) => this.guard.run(call),
    });
  }

  /**
   * @param batches one at least; in a cluster, with names on one shard
   * @returns for each batch, in their order, its reply, or the error with which it failed alone
   */
  check(batches: readonly CheckBatch[]): Promise<(CheckBatchReply | Error)[]> {
    return this.#checks.check(batches);
  }

  /**
   * Serves the queue as of now, renews this replica's lease, and returns the state of its waiters. A waiter
   * that is neither approved nor in the queue is put back in its place.
   * @param known of a key that Redis may have lost
   * @param askedAbout in the order of their tickets
   */
  async settle(
    names: KeyNames,
    known: KnownWindow,
    askedAbout: readonly Ticket[],
  ): Promise<SettleReply> {
    const args = [encodeSettle(known, askedAbout)];
    const { replicaId, observer } = this.settings;
    const reply = decodeSettleReply(await this.#run(this.#scripts.settle, names, args), replicaId);
    if (reply.unclaimed > 0) observer.unclaimed(reply.unclaimed);
    return reply;
  }

  /**
   * Renews this replica's leases for keys that are as it knows them. For other keys a settle has to follow.
   * @param leased one at least; in a cluster, with names in one slot
   * @returns those whose leases were not renewed
   */
  renew<Leased extends LeasedPlaces>(leased: readonly Leased[]): Promise<Leased[]> {
    const [first] = leased;
    if (!first) return Promise.resolve([]);
    const { limitsOf, timeOf } = this.settings;
    const { names } = first;
    const shared = sharedArguments(this.settings, names, limitsOf(names.key), timeOf(names.state));
    const call = {
      script: this.#scripts.renew,
      keys: leased.flatMap(keysToRenew),
      args: [...shared, encodeRenewal(leased)],
    };
    const send = async (isWanted: () => boolean): Promise<Leased[]> =>
      decodeNotRenewed(leased, await this.#client.sendAtOnce(call, isWanted));
    // It may have written nothing.
    const options = { size: leased.length, isWrite: false };
    return this.#guarded(this.#scripts.renew, names.state, send, options);
  }

  /** @throws UnavailableError for a peek, if a check could not be decided */
  async ask<Name extends ScriptedOperation>(
    operation: Name,
    names: KeyNames,
    asked: AskedOfKey<Name>,
  ): Promise<Answer<Name>> {
    const row: Row<Name> = ROWS[operation];
    const script = this.#scripts[row.script];
    const { isRepeatable = true } = row;
    const { trace } = asked;
    const args = row.encode(asked, names, this.settings);
    const reply = row.keys
      ? await this.#runAlone({ script, keys: row.keys(names), args }, names.state)
      : await this.#run(script, names, args, { isRepeatable, traces: trace && [trace] });
    return row.decode(reply, names);
  }

  async statuses(names: KeyNames, requestIds: readonly string[]): Promise<Statuses> {
    return decodeStatuses(await this.#run(this.#scripts.status, names, requestIds));
  }

  /**
   * Withdraws waiters, and releases those that were approved.
   * @param withdrawals in a cluster, with names in one slot
   * @returns for each key, in their order, how many were withdrawn or released, or the error with which it failed alone
   */
  withdraw(withdrawals: readonly KeyClaims[]): Promise<(number | Error)[]> {
    const { observer } = this.settings;
    return this.#runForClaims(this.#scripts.withdraw, withdrawals, (reply) =>
      decodeWithdrawn(reply, (count) => {
        observer.unclaimed(count);
      }),
    );
  }

  /**
   * Claims approvals that are kept for the callers of kept places, since these callers are about to be told.
   * @param granted in a cluster, with names in one slot
   * @returns for each key, in their order, what has become of its approvals, or the error with which the key failed
   *   alone. If one may not, a settle tells what has become of its request
   */
  confirm(granted: readonly KeyClaims[]): Promise<(Confirmed | Error)[]> {
    return this.#runForClaims(this.#scripts.confirm, granted, decodeConfirmed);
  }

  /**
   * @param keys in a cluster, with names in one slot
   * @returns for each key, in their order, its state, nothing if there is none, or its error
   */
  inspect(keys: readonly KeyNames[]): Promise<(InspectReply | undefined | Error)[]> {
    return inSeveralCalls(keys, (rest) => {
      const call = { script: this.#scripts.inspect, keys: rest.flatMap(keysToInspect), args: [] };
      return this.#guarded(
        this.#scripts.inspect,
        rest[0].state,
        (isWanted) => this.#sendForEach(call, isWanted, decodeInstances),
        { size: rest.length },
      );
    });
  }

  /**
   * @param cursor of the page
   * @param size about how many holds a page has
   */
  async holders(names: KeyNames, cursor: string, size: number): Promise<PageOfHolds> {
    const call = {
      script: this.#scripts.holders,
      keys: keysOfHolders(names),
      args: [cursor, size],
    };
    return decodeHolders(await this.#runAlone(call, names.state));
  }

  /**
   * Keeps the report of this replica among those of all.
   * @param name of the reports
   */
  async report(name: string, report: string, keptMillis: number): Promise<void> {
    const args = [this.settings.replicaId, report, keptMillis];
    const call = { script: this.#scripts.report, keys: [name], args };
    await this.#runAlone(call, name);
  }

  /** Sends a script that needs nothing of the caller. */
  #runAlone(call: ScriptCall, name: string): Promise<unknown> {
    const send = (isWanted: () => boolean): Promise<unknown> =>
      this.#client.sendWithOthers(call, isWanted);
    return this.#guarded(call.script, name, send);
  }

  #run(
    script: Script,
    names: KeyNames,
    ownArgs: readonly (string | number)[],
    options?: RunOptions,
  ): Promise<unknown> {
    const { limitsOf, timeOf } = this.settings;
    const callAt = (time: number): ScriptCall => {
      const shared = sharedArguments(this.settings, names, limitsOf(names.key), time);
      return { script, keys: keysOf(names), args: [...shared, ...ownArgs] };
    };
    const send = (isWanted: () => boolean): Promise<unknown> =>
      sendWithCalendars(timeOf(names.state), (time) =>
        this.#client.sendWithOthers(callAt(time), isWanted),
      );
    return this.#guarded(script, names.state, send, options);
  }

  /** @param name a name in Redis that the call touches */
  #guarded<Reply>(
    script: Script,
    name: string,
    send: (isWanted: () => boolean) => Promise<Reply>,
    { size = 1, isWrite = script.mayWrite, isRepeatable = true, traces }: RunOptions = {},
  ): Promise<Reply> {
    return this.guard.run({
      script: script.name,
      operation: this.#operation,
      name,
      size,
      traces,
      isWrite,
      isRepeatable,
      send: (_attempt, isWanted) => send(isWanted),
    });
  }

  /** @param ofKeys in a cluster, with names in one slot */
  #runForClaims<Reply>(
    script: Script,
    ofKeys: readonly KeyClaims[],
    decode: (reply: unknown) => (Reply | Error)[],
  ): Promise<(Reply | Error)[]> {
    return inSeveralCalls(ofKeys, (rest) => {
      const { state } = rest[0].names;
      const send = (isWanted: () => boolean): Promise<(Reply | Error)[]> =>
        sendWithCalendars(this.settings.timeOf(state), (time) => {
          const call = { script, ...encodeKeyClaims(this.settings, rest, time) };
          return this.#sendForEach(call, isWanted, decode);
        });
      return this.#guarded(script, state, send, { size: rest.length });
    });
  }

  /** Sends a script that replies for each of several limiter keys, with an error for each that failed. */
  async #sendForEach<Reply>(
    call: ScriptCall,
    isWanted: () => boolean,
    decode: (reply: unknown) => (Reply | Error)[],
  ): Promise<(Reply | Error)[]> {
    return replyForEach(decode(await this.#client.sendAtOnce(call, isWanted)));
  }
}
