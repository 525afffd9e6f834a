import { StoreFullError } from '../../limiter/errors.js';
import type { RequestTrace } from '../../limiter/limiter.js';
import type { CallGuard } from '../availability/call-guard.js';
import { classifyFailure } from '../availability/store-errors.js';
import { groupBy, KeysForTime } from '../../common/collections.js';
import {
  type CheckBatch,
  type CheckBatchReply,
  type CheckReplies,
  decodeCheckReplies,
  encodeChecks,
  NEEDS_ALL_NAMES,
} from './check-codec.js';
import { replyForEach } from './several-keys.js';
import type { ScriptClient, ScriptClientParts } from './script-client.js';
import type { Script } from './script-loader.js';
import { type CallerSettings, timeOfStaleCall } from './shared-arguments.js';

/** How long checks assume that Redis may have no memory left after it has refused one for that reason. */
const FULL_MILLIS = 1000;
/** How long the calls to a shard have one slot each after the shard has failed all keys of a call with several. */
const BY_SLOT_MILLIS = 1000;

/** The reply for a batch whose slot is not where the call went. */
const MOVED = Symbol('moved');

type BatchReply = CheckBatchReply | Error;
type Reply = BatchReply | typeof MOVED;

interface CallOptions {
  /** The checks may have run before. */
  readonly wasSent: boolean;
  /** The call goes to the primary of a shard, and its names are in several slots. Otherwise they are in one slot. */
  readonly isOfShard: boolean;
}

/**
 * Calls `lua/check.lua`. In a cluster a call has keys of several slots of a shard: with a call for each slot, most calls
 * would have one key, and a decision would cost three times as much. Redis decides each key by itself, so a slot that
 * has moved, or that moves, concerns its own keys only. These get calls of their own, which follow the slot.
 */
export class CheckCalls {
  /** The shards that may have no memory left. */
  readonly #full: KeysForTime;
  /** The shards whose calls have one slot each. */
  readonly #bySlot: KeysForTime;

  readonly #operation = () => this.client.operation;
  readonly #onUnclaimed = (count: number): void => {
    this.settings.observer.unclaimed(count);
  };

  constructor(
    private readonly script: Script,
    private readonly client: ScriptClient,
    private readonly parts: Pick<ScriptClientParts, 'connections' | 'clock'>,
    private readonly settings: CallerSettings,
    private readonly guard: Pick<CallGuard, 'run'>,
  ) {
    this.#full = new KeysForTime(FULL_MILLIS, parts.clock);
    this.#bySlot = new KeysForTime(BY_SLOT_MILLIS, parts.clock);
  }

  /**
   * @param batches one at least; in a cluster, with names on one shard
   * @returns for each batch, in their order, its reply, or the error with which it failed alone
   */
  check(batches: readonly CheckBatch[]): Promise<BatchReply[]> {
    const shard = this.#sharedShard(batches);
    return shard === undefined
      ? this.#checkBySlot(batches, false)
      : this.#checkShard(shard, batches);
  }

  async #checkShard(shard: string, batches: readonly CheckBatch[]): Promise<BatchReply[]> {
    let wasSent = false;
    const replies = await this.#call(batches, { wasSent, isOfShard: true }, (attempt) => {
      wasSent = attempt > 1;
    });
    const moved = batches.filter((_, i) => replies[i] === MOVED);
    if (moved.length === 0) return replies as BatchReply[];
    if (moved.length === batches.length) this.#bySlot.add(shard);
    const later = (await this.#checkBySlot(moved, wasSent)).values();
    return replies.map((reply) => (reply === MOVED ? later.next().value : reply)) as BatchReply[];
  }

  /** @returns undefined if each slot gets a call of its own */
  #sharedShard([first, second]: readonly CheckBatch[]): string | undefined {
    const { connections } = this.parts;
    if (!connections.isCluster || !first || !second) return undefined;
    const shard = connections.shardOf(first.names.state);
    if (!this.#bySlot.isEmpty && this.#bySlot.has(shard)) return undefined;
    return connections.nodeAt(shard) && shard;
  }

  /** A slot that fails harms no other. */
  #checkBySlot(batches: readonly CheckBatch[], wasSent: boolean): Promise<BatchReply[]> {
    const { connections } = this.parts;
    const call = (some: readonly CheckBatch[]): Promise<BatchReply[]> =>
      this.#call(some, { wasSent, isOfShard: false }) as Promise<BatchReply[]>;
    if (!connections.isCluster) return call(batches);
    const bySlot = groupBy(batches, ({ names }) => connections.slotOf(names.state));
    return bySlot.length === 1 ? call(batches) : checkEach(batches, bySlot, call);
  }

  #call(
    batches: readonly CheckBatch[],
    { wasSent, isOfShard }: CallOptions,
    onAttempt?: (attempt: number) => void,
  ): Promise<Reply[]> {
    const size = batches.reduce((sum, { checks }) => sum + checks.length, 0);
    return this.guard.run({
      script: this.script.name,
      operation: this.#operation,
      name: batches[0]?.names.state ?? '',
      size,
      traces: tracesOf(batches),
      isWrite: true,
      isRepeatable: true,
      send: (attempt, isWanted) => {
        onAttempt?.(attempt);
        return this.#send(batches, { wasSent: wasSent || attempt > 1, isOfShard }, isWanted);
      },
    });
  }

  #shardOf([first]: readonly CheckBatch[]): string {
    return this.parts.connections.shardOf(first?.names.state ?? '');
  }

  /**
   * Sends batches until each has its reply. Those go again that need all names, or the windows of their calendars at the time
   * that Redis has said, or that a full Redis has refused, so that it refuses only new keys.
   */
  async #send(
    batches: readonly CheckBatch[],
    { wasSent, isOfShard }: CallOptions,
    isWanted: () => boolean,
  ): Promise<Reply[]> {
    const { client, script, settings } = this;
    // A batch that is sent again for all its names is marked so until it has its reply.
    const replies: (Reply | typeof NEEDS_ALL_NAMES)[] = [];
    let sent = batches;
    /** Where those that are sent again stand in `batches`. */
    let indexes: readonly number[] = [];
    let time = settings.timeOf(batches[0]?.names.state ?? '');
    for (;;) {
      const mayBeFull = !this.#full.isEmpty && this.#full.has(this.#shardOf(batches));
      const hasSeveralSlots = isOfShard && sent.length > 1;
      const circumstances = { isSentAgain: wasSent, mayBeFull, hasSeveralSlots, time };
      const call = {
        script,
        ...encodeChecks(settings, sent, circumstances),
        shard: hasSeveralSlots ? this.#shardOf(sent) : undefined,
        failsWhenFull: !mayBeFull,
      };
      let reply: unknown;
      try {
        reply = await client.sendAtOnce(call, isWanted);
      } catch (error) {
        if (mayBeFull || classifyFailure(error) !== 'full') throw error;
        this.#full.add(this.#shardOf(batches));
        continue;
      }
      const { limitsOf } = settings;
      const decoded = decodeCheckReplies(sent, reply as CheckReplies, limitsOf, this.#onUnclaimed);
      if (sent === batches && decoded.every(isDecision)) return decoded;
      const round = replyForEach<Exclude<Reply, Error> | typeof NEEDS_ALL_NAMES>(
        hasSeveralSlots
          ? decoded.map((each) => (classifyFailure(each) === 'moving' ? MOVED : each))
          : decoded,
      );
      if (round.some((each) => each instanceof StoreFullError)) {
        this.#full.add(this.#shardOf(batches));
      }
      time = decoded.map(timeOfStaleCall).find((said) => said !== undefined) ?? time;
      const again: number[] = [];
      for (const [i, each] of round.entries()) {
        const index = indexes[i] ?? i;
        const isMarked = replies[index] === NEEDS_ALL_NAMES;
        if (each === NEEDS_ALL_NAMES) {
          replies[index] = each;
          again.push(index);
        } else if (
          timeOfStaleCall(each) !== undefined ||
          (each instanceof StoreFullError && !mayBeFull)
        ) {
          again.push(index);
        } else if (isMarked && each !== MOVED && !(each instanceof Error)) {
          replies[index] = { ...each, neededAllNames: true };
        } else replies[index] = each;
      }
      if (again.length === 0) return replies as Reply[];
      indexes = again;
      sent = batches
        .filter((_, i) => again.includes(i))
        .map((batch) => ({ ...batch, assumption: 'unknown' as const }));
    }
  }
}

/** @returns the replies to all batches, in their order; those of a group whose call failed are its error */
async function checkEach(
  batches: readonly CheckBatch[],
  groups: readonly (readonly CheckBatch[])[],
  call: (group: readonly CheckBatch[]) => Promise<BatchReply[]>,
): Promise<BatchReply[]> {
  const replies = new Map<CheckBatch, BatchReply>();
  await Promise.all(
    groups.map(async (group) => {
      const all = await call(group).catch((error: unknown) => group.map(() => error as Error));
      for (const [i, batch] of group.entries()) replies.set(batch, all[i] ?? unanswered());
    }),
  );
  return batches.map((batch) => replies.get(batch) ?? unanswered());
}

function unanswered(): Error {
  return new Error('check.lua left a batch unanswered');
}

function isDecision(
  reply: CheckBatchReply | Error | typeof NEEDS_ALL_NAMES,
): reply is CheckBatchReply {
  return reply !== NEEDS_ALL_NAMES && !(reply instanceof Error);
}

/** @returns undefined if no check is traced */
function tracesOf(batches: readonly CheckBatch[]): RequestTrace[] | undefined {
  let all: RequestTrace[] | undefined;
  for (const { traces } of batches) if (traces) (all ??= []).push(...traces);
  return all;
}
