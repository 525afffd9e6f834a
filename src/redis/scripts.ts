import { type Cluster, Command, type Redis } from 'ioredis';

import type { Limits } from '../limiter/limiter.js';
import type { CallGuard } from './availability/call-guard.js';
import { classifyFailure, toLimiterError } from './availability/store-errors.js';
import type { KeyNames } from './key-names.js';
import { loadScript, type Script } from './script-loader.js';
import type { WaitingStore } from './waiting/waiting-store.js';

/** The verdicts of `lua/check.lua`; a larger number is a ticket in the queue. */
export const VERDICT = { approved: 1, denied: 0, queueFull: -1 } as const;

export interface BatchedCheck {
  readonly requestId: string;
  readonly canWait: boolean;
}

export interface Overrides {
  readonly maxRequests: number | undefined;
  readonly maxRequestsInQueue: number | undefined;
}

/** What a replica knows of a key that it holds waiters of. */
export interface KnownWaiting {
  readonly lowestTicket: number;
  readonly millisToWindowEnd: number;
}

/** Checks of one key with the same overrides, in their order. */
export interface CheckBatch {
  readonly names: KeyNames;
  readonly overrides: Overrides;
  /** Who waits for the key here, where anybody does: shows whether Redis has lost its queue. */
  readonly waiting: KnownWaiting | undefined;
  readonly checks: readonly BatchedCheck[];
}

export interface CheckBatchReply {
  readonly millisToWindowEnd: number;
  /** For each check, in their order: one of {@link VERDICT}, or the ticket of its place in the queue. */
  readonly verdicts: readonly number[];
}

export interface Ticket {
  readonly requestId: string;
  readonly ticket: number;
}

export interface SettleReply {
  readonly millisToWindowEnd: number;
  /** Every lower ticket has left the queue; infinite where Redis knows no such key. */
  readonly waitingFrom: number;
  readonly waiting: number;
  readonly granted: readonly string[];
}

export interface InspectReply {
  readonly limits: Limits;
  readonly approved: number;
  readonly denied: number;
  readonly waiting: number;
}

export interface ScriptSettings {
  readonly limits: Limits;
  readonly replicaId: string;
  readonly leaseMillis: number;
  /** Lua fragments that stand in for files, see {@link loadScript}. */
  readonly replacements?: Readonly<Record<string, string>> | undefined;
}

/** What `lua/check.lua` is told of a check. */
const CHECK = { refusable: '0', canWait: '1', sentAgain: '2' } as const;

type Send = (
  command: 'evalsha' | 'eval',
  args: [script: string, keys: number, ...(string | number)[]],
) => Promise<unknown>;

/** One call of a script. */
interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * One typed function for each script in `lua/`; KEYS, ARGV and replies are described there.
 * Each rejects with a StoreUnavailableError when Redis can't be asked or does not answer in time.
 */
export class Scripts {
  readonly #check: Script;
  readonly #settle: Script;
  readonly #release: Script;
  readonly #cancel: Script;
  readonly #inspect: Script;

  constructor(
    private readonly client: Redis | Cluster,
    private readonly guard: Pick<CallGuard, 'run'>,
    private readonly settings: ScriptSettings,
  ) {
    const load = (name: string): Script => loadScript(name, settings.replacements);
    this.#check = load('check');
    this.#settle = load('settle');
    this.#release = load('release');
    this.#cancel = load('cancel');
    this.#inspect = load('inspect');
  }

  /**
   * @param batches of names in one slot, where there is a cluster
   * @returns for each batch, in their order, its reply, or the error with which it failed alone
   */
  check(batches: readonly CheckBatch[]): Promise<(CheckBatchReply | Error)[]> {
    const { limits, leaseMillis, replicaId } = this.settings;
    const keys = batches.flatMap(({ names }) => allKeys(names));
    const fixed = [
      limits.windowMillis,
      leaseMillis,
      limits.maxRequests,
      limits.maxRequestsInQueue,
      replicaId,
    ];
    const size = batches.reduce((sum, { checks }) => sum + checks.length, 0);
    return this.guard.run({
      script: this.#check.name,
      name: keys[0] ?? '',
      size,
      isWrite: true,
      isRepeatable: true,
      send: async (attempt) => {
        const args = [...fixed, ...batches.flatMap((batch) => batchArgs(batch, attempt > 1))];
        const replies = await this.#sendForEach({ script: this.#check, keys, args });
        return replies.map((reply) => (reply instanceof Error ? reply : parseBatchReply(reply)));
      },
    });
  }

  /** @param knownMillisLeft until the window ends, as the caller has it, for a key that Redis lost */
  async settle(
    names: KeyNames,
    knownMillisLeft: number,
    askedAbout: readonly Ticket[],
  ): Promise<SettleReply> {
    const { limits, leaseMillis, replicaId } = this.settings;
    const reply = await this.#run(this.#settle, names, [
      limits.windowMillis,
      leaseMillis,
      limits.maxRequests,
      limits.maxRequestsInQueue,
      knownMillisLeft,
      replicaId,
      ...askedAbout.flatMap(({ requestId, ticket }) => [requestId, ticket]),
    ]);
    const [microsToWindowEnd, waitingFrom, waiting, ...granted] = reply as [
      number,
      number,
      number,
      ...string[],
    ];
    const isUnknown = microsToWindowEnd === 0;
    return {
      millisToWindowEnd: microsToWindowEnd / 1000,
      waitingFrom: isUnknown ? Infinity : waitingFrom,
      waiting,
      granted,
    };
  }

  /** Not sent again where it may have run: what was released once would not be found. */
  async release(names: KeyNames, requestId: string): Promise<boolean> {
    const { limits, leaseMillis } = this.settings;
    const args = [limits.windowMillis, leaseMillis, requestId];
    const reply = await this.#run(this.#release, names, args, { isRepeatable: false });
    return reply === 1;
  }

  /** @param endsLease whether this replica holds no other waiter of the key */
  async cancel(names: KeyNames, requestIds: readonly string[], endsLease: boolean): Promise<void> {
    const { limits, leaseMillis, replicaId } = this.settings;
    await this.#run(this.#cancel, names, [
      limits.windowMillis,
      leaseMillis,
      replicaId,
      endsLease ? '1' : '0',
      ...requestIds,
    ]);
  }

  /**
   * @param keys of one slot, where there is a cluster
   * @returns for each key, in their order, its state, nothing where there is none, or its error
   */
  inspect(keys: readonly KeyNames[]): Promise<(InspectReply | undefined | Error)[]> {
    const names = keys.flatMap(({ state, queue, replicas }) => [state, queue, replicas]);
    return this.guard.run({
      script: this.#inspect.name,
      name: names[0] ?? '',
      size: keys.length,
      isWrite: false,
      isRepeatable: true,
      send: async () => {
        const call = { script: this.#inspect, keys: names, args: [] };
        const replies = await this.#sendForEach(call);
        return replies.map((reply) => (reply instanceof Error ? reply : parseInstance(reply)));
      },
    });
  }

  #run(
    script: Script,
    names: KeyNames,
    args: readonly (string | number)[],
    { isRepeatable = true } = {},
  ): Promise<unknown> {
    return this.guard.run({
      script: script.name,
      name: names.state,
      size: 1,
      isWrite: true,
      isRepeatable,
      send: () => this.#send({ script, keys: allKeys(names), args }, this.#withOthers),
    });
  }

  /** Sends a script that replies for each of several limiter keys, with an error for one that failed. */
  async #sendForEach(call: ScriptCall): Promise<(number[] | Error)[]> {
    const replies = (await this.#send(call, this.#atOnce)) as (number[] | Error)[];
    const [first] = replies;
    // None of them ran: it is the store that failed, not a key.
    if (first instanceof Error && replies.every((reply) => classifyFailure(reply) !== 'fault')) {
      throw first;
    }
    return replies.map((reply) =>
      reply instanceof Error ? (toLimiterError(reply) as Error) : reply,
    );
  }

  /** EVALSHA, or EVAL where Redis has forgotten the script (SCRIPT FLUSH, restart, failover). */
  async #send({ script, keys, args }: ScriptCall, send: Send): Promise<unknown> {
    try {
      return await send('evalsha', [script.sha1, keys.length, ...keys, ...args]);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return send('eval', [script.text, keys.length, ...keys, ...args]);
    }
  }

  /** One write with all that is sent in this turn of the event loop, which ioredis makes in the next. */
  readonly #withOthers: Send = (command, args) => {
    // A cluster's automatic pipelines wait for one another, and fail together when a slot moves.
    if (this.client.isCluster) return this.#atOnce(command, args);
    const [script, ...rest] = args;
    return this.client[command](script, ...rest);
  };

  /**
   * A write at once, for what has been gathered already; ioredis' automatic pipeline would wait for
   * another turn. A pipeline of its own would do it, too, but its objects outlive the young generation:
   * a sixth fewer decisions a second, and longer garbage collections.
   */
  readonly #atOnce: Send = (command, args) =>
    this.client.sendCommand(
      new Command(command, args, { replyEncoding: 'utf8' }),
    ) as Promise<unknown>;
}

/** The scripts as those who wait call them. */
export function waitingStoreOf(scripts: Pick<Scripts, 'settle' | 'cancel'>): WaitingStore {
  return {
    settle: async (names, knownMillisLeft, askedAbout) => {
      const reply = await scripts.settle(names, knownMillisLeft, askedAbout);
      const { millisToWindowEnd, waitingFrom, waiting, granted } = reply;
      const millisToRoom = millisToWindowEnd === 0 ? undefined : millisToWindowEnd;
      return { millisToRoom, waitingFrom, waiting, granted };
    },
    // The lease ends only where the script finds no other place of this replica.
    withdraw: (names, requestIds) => scripts.cancel(names, requestIds, true),
  };
}

function batchArgs(batch: CheckBatch, isSentAgain: boolean): (string | number)[] {
  const { overrides, waiting, checks } = batch;
  const { maxRequests = '', maxRequestsInQueue = '' } = overrides;
  const refusable = isSentAgain ? CHECK.sentAgain : CHECK.refusable;
  const args: (string | number)[] = [
    maxRequests,
    maxRequestsInQueue,
    waiting?.lowestTicket ?? '',
    waiting?.millisToWindowEnd ?? 0,
    checks.length,
  ];
  for (const { requestId, canWait } of checks) {
    args.push(requestId, canWait ? CHECK.canWait : refusable);
  }
  return args;
}

function parseBatchReply([microsToWindowEnd = 0, ...verdicts]: readonly number[]): CheckBatchReply {
  return { millisToWindowEnd: microsToWindowEnd / 1000, verdicts };
}

function parseInstance(reply: readonly number[]): InspectReply | undefined {
  if (reply.length === 0) return undefined;
  const [windowMillis, maxRequests, maxRequestsInQueue, approved, denied, waiting] = reply as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return { limits: { windowMillis, maxRequests, maxRequestsInQueue }, approved, denied, waiting };
}

function allKeys(names: KeyNames): string[] {
  return [names.state, names.requests, names.queue, names.replicas];
}
