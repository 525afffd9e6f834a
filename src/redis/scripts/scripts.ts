import type { CallGuard } from '../availability/call-guard.js';
import type { Answer, RequestStatus, RequestTrace } from '../../limiter/limiter.js';
import type { KeyNames } from '../shared/key-names.js';
import { CheckCalls } from './check-calls.js';
import type { CheckBatch, CheckBatchReply } from './check-codec.js';
import {
  type Confirmed,
  decodeConfirmed,
  decodeWithdrawn,
  encodeKeyClaims,
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

/** The script calls for waiters. */
export type WaitingStore = Pick<Scripts, 'settle' | 'renew' | 'withdraw' | 'confirm' | 'statuses'>;

type KeysAndArgs = Pick<ScriptCall, 'keys' | 'args' | 'readsFirst'>;

interface CallOptions<Reply> {
  /** For several keys: the amount of work. Such a call waits for no others. */
  readonly size?: number;
  /** Whether its success shows that Redis accepts writes. Default: unless the script never writes. */
  readonly isWrite?: boolean;
  readonly isRepeatable?: boolean | undefined;
  readonly traces?: readonly RequestTrace[] | undefined;
  /** Throws if the reply says that the call has failed. */
  readonly decode?: (reply: unknown) => Reply;
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
  readonly #checks: CheckCalls;
  readonly #scripts: Readonly<Record<ScriptName, Script>>;

  constructor(
    client: ScriptClientParts,
    private readonly guard: Pick<CallGuard, 'run'>,
    private readonly settings: ScriptSettings,
  ) {
    this.#client = new ScriptClient(client);
    const loaded = Object.entries(SCRIPTS).map(
      ([name, flags]) => [name, loadScript(name, settings.replacements, flags)] as const,
    );
    this.#scripts = Object.fromEntries(loaded) as Record<ScriptName, Script>;
    this.#checks = new CheckCalls(this.#scripts.check, this.#client, client, settings, guard);
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
    const { replicaId, observer } = this.settings;
    const args = [encodeSettle(known, askedAbout)];
    const said = await this.#call(this.#scripts.settle, names.state, this.#forKey(names, args));
    const reply = decodeSettleReply(said, replicaId);
    if (reply.unclaimed > 0) observer.unclaimed(reply.unclaimed);
    return reply;
  }

  /**
   * Renews this replica's leases for keys that are as it knows them. For other keys a settle has to follow.
   * @param leased one at least; in a cluster, with names in one slot
   * @returns those whose leases were not renewed
   */
  async renew<Leased extends LeasedPlaces>(leased: readonly Leased[]): Promise<Leased[]> {
    const [first] = leased;
    if (!first) return [];
    const known = leased.map(({ places, keepsAny, wakeNumber }) => ({
      places,
      keepsAny,
      wakeNumber,
    }));
    const callAt = (time: number): KeysAndArgs => ({
      keys: leased.flatMap(keysToRenew),
      args: [...this.#shared(first.names, time), JSON.stringify(known)],
      readsFirst: true,
    });
    // It may have written nothing.
    const options = { size: leased.length, isWrite: false };
    const reply = await this.#call(this.#scripts.renew, first.names.state, callAt, options);
    const notRenewed = new Set(reply as readonly number[]);
    return leased.filter((_, i) => notRenewed.has(i + 1));
  }

  /** @throws UnavailableError for a peek, if a check could not be decided */
  async ask<Name extends ScriptedOperation>(
    operation: Name,
    names: KeyNames,
    asked: AskedOfKey<Name>,
  ): Promise<Answer<Name>> {
    const { script, keys, encode, decode, isRepeatable }: Row<Name> = ROWS[operation];
    const { trace } = asked;
    const args = encode(asked, names, this.settings);
    const callAt = keys ? () => ({ keys: keys(names), args }) : this.#forKey(names, args);
    const options = { isRepeatable, traces: trace && [trace] };
    const reply = await this.#call(this.#scripts[script], names.state, callAt, options);
    return decode(reply, names, asked);
  }

  async statuses(
    names: KeyNames,
    requestIds: readonly string[],
  ): Promise<(RequestStatus | undefined)[]> {
    const callAt = this.#forKey(names, requestIds);
    return decodeStatuses(await this.#call(this.#scripts.status, names.state, callAt));
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
      const call = { keys: rest.flatMap(keysToInspect), args: [] };
      return this.#call(this.#scripts.inspect, rest[0].state, () => call, {
        size: rest.length,
        decode: (reply) => replyForEach(decodeInstances(reply)),
      });
    });
  }

  /**
   * @param cursor of the page
   * @param size about how many holds a page has
   */
  async holders(names: KeyNames, cursor: string, size: number): Promise<PageOfHolds> {
    const call = { keys: keysOfHolders(names), args: [cursor, size] };
    return decodeHolders(await this.#call(this.#scripts.holders, names.state, () => call));
  }

  /**
   * Keeps the report of this replica among those of all.
   * @param name of the reports
   */
  async report(name: string, report: string, keptMillis: number): Promise<void> {
    const args = [this.settings.replicaId, report, keptMillis];
    await this.#call(this.#scripts.report, name, () => ({ keys: [name], args, readsFirst: true }));
  }

  /** The start of ARGV. @param time of Redis, for calendars */
  #shared(names: KeyNames, time: number): readonly (string | number)[] {
    return sharedArguments(this.settings, names, this.settings.limitsOf(names.key), time);
  }

  /** A call with all names of one key. */
  #forKey(names: KeyNames, ownArgs: KeysAndArgs['args']): (time: number) => KeysAndArgs {
    return (time) => ({ keys: keysOf(names), args: [...this.#shared(names, time), ...ownArgs] });
  }

  /** @param ofKeys in a cluster, with names in one slot */
  #runForClaims<Reply>(
    script: Script,
    ofKeys: readonly KeyClaims[],
    decode: (reply: unknown) => (Reply | Error)[],
  ): Promise<(Reply | Error)[]> {
    return inSeveralCalls(ofKeys, (rest) => {
      const callAt = (time: number): KeysAndArgs => encodeKeyClaims(this.settings, rest, time);
      return this.#call(script, rest[0].names.state, callAt, {
        size: rest.length,
        decode: (reply) => replyForEach(decode(reply)),
      });
    });
  }

  /**
   * @param name a name in Redis that the call touches
   * @param callAt with the calendars of a time of Redis
   */
  #call<Reply = unknown>(
    script: Script,
    name: string,
    callAt: (time: number) => KeysAndArgs,
    options: CallOptions<Reply> = {},
  ): Promise<Reply> {
    const { size, isWrite = script.mayWrite, isRepeatable = true, traces, decode } = options;
    const client = this.#client;
    return this.guard.run({
      script: script.name,
      operation: () => client.operation,
      name,
      size: size ?? 1,
      traces,
      isWrite,
      isRepeatable,
      send: (_attempt, isWanted) =>
        sendWithCalendars(this.settings.timeOf(name), async (time) => {
          const call = { script, ...callAt(time) };
          const reply = await (size === undefined
            ? client.sendWithOthers(call, isWanted)
            : client.sendAtOnce(call, isWanted));
          return decode ? decode(reply) : (reply as Reply);
        }),
    });
  }
}
