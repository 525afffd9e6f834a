import type { Redis } from 'ioredis';

import {
  type Amended,
  type Amendment,
  type InstanceDetail,
  isPlain,
  type PeekRequest,
  type RejectedAmendment,
  type RejectedReport,
  type Remaining,
  type RemainingReport,
  type RequestStatus,
} from '../../src/limiter/limiter.js';
import { parseClaim, type RequestTerms } from '../../src/limiter/request.js';
import { UnavailableError } from '../../src/limiter/errors.js';
import { type KeyNames, KeyNaming } from '../../src/redis/shared/key-names.js';
import {
  type BatchedCheck,
  type CheckBatch,
  type CheckBatchReply,
  type KnownWaiting,
  VERDICT,
} from '../../src/redis/scripts/check-codec.js';
import type { InspectReply } from '../../src/redis/scripts/looks-codec.js';
import type { AskedRequest } from '../../src/redis/scripts/requests-codec.js';
import { Scripts } from '../../src/redis/scripts/scripts.js';
import { keysOf } from '../../src/redis/scripts/shared-arguments.js';
import type { SettleReply } from '../../src/redis/scripts/settle-codec.js';
import { LEASES_UNSETTLED } from '../../src/redis/shared/losses.js';
import { type DeclaredLimits, keyLimits } from './limits.js';
import { luaNumber } from './lua-constants.js';
import { controlledRedisTime, type RedisTime, startOfControlledTime } from './redis-time.js';
import { scriptClientParts } from './script-client-parts.js';
import { listId, readRecord, storedQueue, type StoredRecord } from './stored-queue.js';
import {
  type OptionalFields,
  readOptionalFields,
  readStoredState,
  writeOptionalFields,
} from './stored-state.js';
import { sentAgain, unguarded } from './unguarded.js';
import { uniqueKey } from './unique-key.js';
import type { RedisForTests } from './use-redis.js';

/** What the scripts of a test get where it does not say otherwise. */
export const TEST_LIMITS: DeclaredLimits = {
  windowMillis: 1000,
  maxRequests: 2,
  maxRequestsInQueue: 3,
};
export const TEST_LEASE_MILLIS = 5000;
/** For how long after a call Redis keeps a key for which somebody waits, at the least. */
export const TEST_KEPT_MILLIS =
  (LEASES_UNSETTLED + luaNumber('lib/instance', 'LEASES_KEPT')) * TEST_LEASE_MILLIS;

export interface Overrides {
  readonly maxRequests?: number;
  readonly maxRequestsInQueue?: number;
  readonly windowMillis?: number;
}

/** With what counts of the key's own limit. */
type WithUsed<Reply> = Reply & { readonly used: number };

/** A number is a ticket, relative to {@link ScriptHarness.startMillis}, in microseconds. */
export type Verdict =
  | 'approved'
  | 'denied'
  | 'queue full'
  | 'queue full of group'
  | 'key full'
  | 'store full'
  | 'too many hits'
  | 'paused'
  | 'id used'
  | 'other hits'
  | 'other hold'
  | 'other holder'
  | 'wait expired'
  | 'taken over'
  | `turn in ${number} ms`
  | number;

/**
 * Everything that Redis holds of one key. Times are milliseconds, and tickets microseconds, after
 * {@link ScriptHarness.startMillis}.
 */
export interface StoredKey {
  readonly state: Readonly<Record<string, unknown>> | undefined;
  /** Sorted. */
  readonly requests: readonly string[];
  /** Sorted; those approved in windows that have ended, and remembered. */
  readonly pastRequests: readonly string[];
  /** The waiters, from the head on, with their tickets. */
  readonly queue: readonly (readonly [waiter: string, ticket: number])[];
  /** The entries of the list that do not wait any more. */
  readonly withdrawnEntries: number;
  /** Until when each replica's lease runs. */
  readonly replicas: Readonly<Record<string, number>>;
  /** When Redis removes each key that exists. */
  readonly expiry: Readonly<Record<string, number>>;
}

export interface ReplicaOptions {
  readonly limits?: Partial<DeclaredLimits>;
  readonly leaseMillis?: number;
  readonly maxIdsPerKey?: number;
  readonly maxHoldsPerKey?: number;
  readonly maxGroupsPerKey?: number;
  /**
   * What the replica knows of the time before its calls, in ms after the start: when its rules were loaded, after
   * everything else where that is left out; and from when to when Redis has answered it, until now where only the first
   * is given.
   */
  readonly history?: { readonly loaded?: number; readonly since?: number; readonly until?: number };
  /** Redis's time as the replica knows it, in ms after the start, where that is out of date. */
  readonly knownMillis?: number;
  /** The connection that the scripts are called on, where it is another one. */
  readonly client?: Redis;
  /** `sentAgain` for calls that may have run before. */
  readonly guard?: typeof unguarded;
  /** Lua fragments instead of files. */
  readonly replacements?: Readonly<Record<string, string>>;
}

/** What a replica knows of a key whose lease it renews. */
export interface RenewalOptions {
  readonly wakeNumber?: number;
  readonly keepsAny?: boolean;
}

/** After anything that a test does. */
const LONG_AFTER_MILLIS = 1e12;
const naming = new KeyNaming('sluice:');
const NO_EXPIRY = -1;
const NOT_THERE = -2;

/** What Redis has under a name of its own for a key. */
export type NameInRedis =
  'state' | 'requests' | 'queue' | 'records' | 'replicas' | 'lapses' | 'ends';

/** A check as tests name one. */
export type TestCheck = AskedRequest & Pick<BatchedCheck, 'requestId' | 'number'>;

/** A check as the scripts take it. */
export function checkOf({ requestId, number, ...request }: TestCheck): BatchedCheck {
  return { request, requestId, number };
}

/** Checks of one key as the scripts take them. */
export function checkBatchOf(
  names: KeyNames,
  checks: readonly TestCheck[],
  { overrides, ...more }: Partial<Omit<CheckBatch, 'overrides'>> & { overrides?: Overrides } = {},
): CheckBatch {
  return {
    names,
    overrides: { maxRequests: undefined, maxRequestsInQueue: undefined, ...overrides },
    waiting: undefined,
    checks: checks.map(checkOf),
    arePlain: checks.every(({ number, ...check }) =>
      isPlain({ key: names.key, ...check, ...overrides, requestId: number?.toString() }),
    ),
    ...more,
  };
}

/** Equal for replicas that are the same in everything; undefined where something of it has no text. */
function idOf(replicaId: string, options: ReplicaOptions): string | undefined {
  const { guard = unguarded, client, history, ...others } = options;
  const guards = [unguarded, sentAgain];
  if (client || history || !guards.includes(guard)) return undefined;
  return JSON.stringify([replicaId, guards.indexOf(guard), others]);
}

/** One limiter key of its own in a real Redis, with Redis's clock under the test's control. */
export class ScriptHarness {
  #names = naming.namesOf(uniqueKey());
  #startMillis = startOfControlledTime();
  #time: RedisTime | undefined;
  /** The names of all further limits that replicas had. */
  readonly #limits = new Set<string>();
  /** Of the replicas so far. Reading all scripts takes ten times as long as a call. */
  readonly #scripts = new Map<string | TestReplica, Scripts>();
  /** With the clock, by the text of what they add to it. */
  readonly #replacements = new Map<string, Readonly<Record<string, string>>>();
  #nowMillis = 0;
  #unclaimed = 0;

  /** Before it is used, it begins. */
  constructor(private readonly redis: Pick<RedisForTests, 'client'>) {}

  /** Starts with the clock at 0. */
  static async create(client: Redis, startMillis?: number): Promise<ScriptHarness> {
    const harness = new ScriptHarness({ client });
    await harness.begin(startMillis);
    return harness;
  }

  /** Begins with another key, with the clock at 0. */
  async begin(startMillis = startOfControlledTime()): Promise<void> {
    this.#names = naming.namesOf(uniqueKey());
    this.#startMillis = startMillis;
    this.#time ??= controlledRedisTime(this.client);
    this.#limits.clear();
    this.#unclaimed = 0;
    await this.setTimeInSilence(0);
  }

  get client(): Redis {
    return this.redis.client;
  }

  get names(): KeyNames {
    return this.#names;
  }

  get startMillis(): number {
    return this.#startMillis;
  }

  /** The fragment that puts Redis's clock under control, see {@link Scripts}. */
  get replacements(): Readonly<Record<string, string>> {
    return this.#clock.replacements;
  }

  /**
   * Sets Redis's clock to this many milliseconds after the start. In a recovery hold, calls have come meanwhile that
   * changed nothing else, as they do from replicas with waiters.
   */
  async setTime(millis: number): Promise<void> {
    await this.setTimeInSilence(millis);
    const { state } = this.names;
    const { recovery_until } = await this.optionalFields();
    if (recovery_until === undefined) return;
    const recovery_seen = this.startMillis + millis;
    await writeOptionalFields(this.client, state, { recovery_seen });
  }

  /** The same, and no call has come meanwhile. */
  setTimeInSilence(millis: number): Promise<void> {
    this.#nowMillis = millis;
    return this.#clock.set(this.startMillis + millis);
  }

  /** Returns the fields in `extra` of its state. */
  optionalFields(): Promise<OptionalFields> {
    return readOptionalFields(this.client, this.names.state);
  }

  get #clock(): RedisTime {
    if (!this.#time) throw new Error('the key has not begun');
    return this.#time;
  }

  replica(replicaId: string, options: ReplicaOptions = {}): TestReplica {
    return new TestReplica(this, replicaId, options);
  }

  scriptsOf(replica: TestReplica): Scripts {
    const { replicaId, options } = replica;
    for (const { name } of options.limits?.further ?? []) if (name) this.#limits.add(name);
    const id = idOf(replicaId, options) ?? replica;
    const scripts = this.#scripts.get(id) ?? this.#makeScripts(replicaId, options);
    this.#scripts.set(id, scripts);
    return scripts;
  }

  #makeScripts(replicaId: string, options: ReplicaOptions): Scripts {
    const limits = keyLimits({ ...TEST_LIMITS, ...options.limits });
    return new Scripts(
      scriptClientParts(options.client ?? this.client),
      options.guard ?? unguarded,
      {
        limitsOf: () => limits,
        replicaId,
        leaseMillis: options.leaseMillis ?? TEST_LEASE_MILLIS,
        wakeArgument: naming.wakeArgument({ isCluster: false }),
        maxIdsPerKey: options.maxIdsPerKey ?? 1_000_000,
        maxHoldsPerKey: options.maxHoldsPerKey ?? 100,
        maxGroupsPerKey: options.maxGroupsPerKey ?? 100,
        historyOf: () => this.#history(options.history),
        observer: {
          unclaimed: (count) => {
            this.#unclaimed += count;
          },
        },
        timeOf: () => this.startMillis + (options.knownMillis ?? this.#nowMillis),
        replacements: this.#replacedBy(options.replacements),
      },
    );
  }

  /** Scripts are made once for the same object, and making them takes much longer than a call. */
  #replacedBy(others: ReplicaOptions['replacements'] = {}): Readonly<Record<string, string>> {
    const id = JSON.stringify(others);
    const known = this.#replacements.get(id);
    if (known) return known;
    const all = { ...this.replacements, ...others };
    this.#replacements.set(id, all);
    return all;
  }

  /** @throws Error where the three keys of the queue contradict each other */
  async stored(): Promise<StoredKey> {
    const { state, requests, pastRequests } = this.names;
    const [stateFields, requestIds, past, queue, expiry] = await Promise.all([
      this.client.hgetall(state),
      this.client.smembers(requests),
      this.client.sunion(...pastRequests),
      storedQueue(this.client, this.names),
      this.expiry(),
    ]);
    return {
      state: this.#readState(stateFields),
      requests: requestIds.sort(),
      pastRequests: past.sort(),
      queue: queue.waiting.map(
        ([waiter, ticket]) => [waiter, this.relativeTicket(ticket)] as const,
      ),
      withdrawnEntries: queue.entries - queue.waiting.length,
      replicas: Object.fromEntries(
        Object.entries(queue.leases).map(([id, until]) => [id, until - this.startMillis]),
      ),
      expiry,
    };
  }

  /** The approvals that count, and the hits of the held ones among them. */
  async counted(): Promise<unknown> {
    const { state } = await this.stored();
    return { approved: state?.approved, held: state?.held ?? 0 };
  }

  /** The waiters as `<request id>@<replica id>`, from the head on. */
  async queued(): Promise<string[]> {
    return (await this.stored()).queue.map(([waiter]) => waiter);
  }

  /** By id, what is stored of each request. */
  async storedRecords(): Promise<Record<string, StoredRecord>> {
    const records = Object.entries(await this.client.hgetall(this.names.records));
    return Object.fromEntries(records.map(([id, text]) => [id, readRecord(text)]));
  }

  /**
   * By id, of the approvals that count as held, `<lapse in ms after the start>:<length>`, with `*<hits>` after it where they are
   * not one, and `/<list>` for a lane.
   */
  async storedHolds(): Promise<Record<string, string>> {
    const records = await this.storedRecords();
    const lapses = await this.client.zrange(this.names.lapses, '0', '-1', 'WITHSCORES');
    const holds: Record<string, string> = {};
    for (let i = 0; i < lapses.length; i += 2) {
      const id = lapses[i]!;
      const {
        state,
        hits,
        took = hits,
        holdMillis,
        renewedMillis,
        keepMillis,
        list,
      } = records[id]!;
      const length = state === 'unclaimed' ? keepMillis : (renewedMillis ?? holdMillis);
      const terms =
        (took === 1 ? '' : `*${took}`) + (list?.kind === 'lane' ? `/${listId(list)}` : '');
      holds[id] = `${Number(lapses[i + 1]) - this.startMillis}:${length}${terms}`;
    }
    return holds;
  }

  /** How many unclaimed approvals have lapsed since this was asked last, as replies told it. */
  takeUnclaimed(): number {
    const count = this.#unclaimed;
    this.#unclaimed = 0;
    return count;
  }

  /**
   * When Redis removes each key that exists, but for those of windows and generations of ids.
   * @throws Error where one never would be removed
   */
  async expiry(): Promise<Record<string, number>> {
    const { state, requests, queue, replicas, records, lapses, ends, pastRequests } = this.names;
    const named = {
      ...{ state, requests, queue, replicas, records, lapses },
      ...Object.fromEntries(
        [undefined, ...this.#limits].map((name) => [
          name === undefined ? 'took' : `took:${name}`,
          this.names.took(0, name),
        ]),
      ),
    };
    const lists = [this.names.headsOf('lane'), this.names.headsOf('group')];
    const recent = [undefined, ...this.#limits].map((name) => this.names.took(1, name));
    const keys = [...Object.values(named), ends, ...pastRequests, ...lists, ...recent];
    const expiries = await this.#expiriesOf(keys);
    const entries = Object.keys(named).map((name, i) => [name, expiries[i]] as const);
    return Object.fromEntries(
      entries.filter((entry): entry is [string, number] => entry[1] !== undefined),
    );
  }

  /**
   * The same for the ids of a limit without fixed windows, by generation.
   * @param name undefined for the key's own limit
   */
  recentExpiry(name: string | undefined): Promise<(number | undefined)[]> {
    return this.#expiriesOf([this.names.took(0, name), this.names.took(1, name)]);
  }

  /** The same for the ids of windows that have ended, by the number of their turn. */
  async pastExpiry(): Promise<Record<number, number>> {
    const expiry: Record<number, number> = {};
    for (const [i, at] of (await this.#expiriesOf(this.names.pastRequests)).entries()) {
      if (at !== undefined) expiry[i + 1] = at;
    }
    return expiry;
  }

  /** Asks for all at once, since this follows each call of a script. */
  async #expiriesOf(keys: readonly string[]): Promise<(number | undefined)[]> {
    const pipeline = this.client.pipeline();
    for (const key of keys) pipeline.pexpiretime(key);
    const replies = (await pipeline.exec()) as [Error | null, number][];
    return replies.map(([error, at], i) => {
      if (error) throw error;
      if (at === NO_EXPIRY) throw new Error(`${keys[i]!} has no expiry`);
      return at === NOT_THERE ? undefined : at - this.startMillis;
    });
  }

  /** Redis loses these names of the key, or all that a key without hits, holds and further limits has. */
  async lose(...names: readonly NameInRedis[]): Promise<void> {
    const lost = names.length === 0 ? keysOf(this.names) : names.map((name) => this.names[name]);
    await this.client.del(...lost);
  }

  relativeTicket(ticket: number): number {
    return ticket - this.startMillis * 1000;
  }

  absoluteTicket(ticket: number): number {
    return ticket + this.startMillis * 1000;
  }

  #history({
    loaded = LONG_AFTER_MILLIS,
    since,
    until = this.#nowMillis,
  }: ReplicaOptions['history'] = {}): string {
    const { startMillis } = this;
    const contact = since === undefined ? '0:0' : `${since + startMillis}:${until + startMillis}`;
    return `${loaded + startMillis}:${contact}`;
  }

  #readState(fields: Readonly<Record<string, string>>): Record<string, unknown> | undefined {
    const stored = readStoredState(fields);
    if (!stored) return undefined;
    const { recoveryUntil, served, ticket, start, expires, born, limitsSince, ...others } = stored;
    const { window, max, queueMax, overridden, approved, denied, gen } = others;
    const { isServing, isUnsorted, holds } = others;
    const moment = (millis: number, never: string): number | string =>
      millis === 0 ? never : millis - this.startMillis;
    return {
      ...{ window, max, queueMax, overridden, approved, denied, gen, isServing, isUnsorted },
      start: start - this.startMillis,
      expires: expires - this.startMillis,
      born: born - this.startMillis,
      // Where they have changed since.
      ...(limitsSince !== born && { limitsSince: limitsSince - this.startMillis }),
      ...(holds && {
        held: holds.held,
        lapses: [holds.firstLapse - this.startMillis, holds.lastLapse - this.startMillis],
      }),
      ticket: this.relativeTicket(ticket === 0 ? born * 1000 : ticket),
      recoveryUntil: moment(recoveryUntil, 'no'),
      served: moment(served, 'never'),
    };
  }
}

/** A key for the tests of a file. Each of them begins with another one. */
export function useScriptHarness(redis: RedisForTests): ScriptHarness {
  const harness = new ScriptHarness(redis);
  beforeEach(() => harness.begin());
  return harness;
}

/**
 * One replica's calls of the scripts on the harness's key. After each call every key that exists
 * must have an expiry.
 */
export class TestReplica {
  constructor(
    private readonly harness: ScriptHarness,
    readonly replicaId: string,
    readonly options: ReplicaOptions,
  ) {}

  get scripts(): Scripts {
    return this.harness.scriptsOf(this);
  }

  /** Checks that do not wait, as one batch. */
  check(requestIds: readonly string[], overrides?: Overrides): Promise<Verdict[]> {
    return this.checkBatch(
      requestIds.map((requestId) => ({ requestId, canWait: false })),
      overrides,
    );
  }

  /** Checks that can wait, as one batch. */
  checkOrWait(requestIds: readonly string[], overrides?: Overrides): Promise<Verdict[]> {
    return this.checkBatch(
      requestIds.map((requestId) => ({ requestId, canWait: true })),
      overrides,
    );
  }

  /** A check whose approval is held. */
  async checkHold(
    requestId: string,
    holdMillis: number,
    more: Partial<TestCheck> = {},
  ): Promise<Verdict> {
    const check = { requestId, canWait: false, holdMillis, ...more };
    const [verdict] = await this.checkBatch([check]);
    return verdict!;
  }

  /** Sends a check with these hits. */
  async checkHits(
    requestId: string,
    hits: number,
    { canWait = false, ...overrides }: Overrides & { readonly canWait?: boolean } = {},
  ): Promise<Verdict> {
    const [verdict] = await this.checkBatch([{ requestId, canWait, hits }], overrides);
    return verdict!;
  }

  /** @param waiting what the replica knows of its waiters, the ticket relative to the start */
  async checkBatch(
    checks: readonly TestCheck[],
    overrides?: Overrides,
    waiting?: Omit<KnownWaiting, 'limits' | 'requestId'> & Partial<KnownWaiting>,
  ): Promise<Verdict[]> {
    const known = waiting && {
      limits: '',
      requestId: 'unknown',
      ...waiting,
      lowestTicket: this.harness.absoluteTicket(waiting.lowestTicket),
    };
    const { verdicts } = await this.checkReply(checks, overrides, { waiting: known });
    await this.harness.expiry();
    return verdicts.map((verdict) => this.#verdict(verdict));
  }

  /** The whole reply to a batch of checks. */
  async checkReply(
    checks: readonly TestCheck[],
    overrides: Overrides = {},
    more: Partial<CheckBatch> = {},
  ): Promise<CheckBatchReply> {
    const batch = checkBatchOf(this.harness.names, checks, { ...more, overrides });
    const [reply] = await this.scripts.check([batch]);
    if (reply instanceof Error) throw reply;
    return reply!;
  }

  /**
   * @param tickets the waiters asked about, with their tickets relative to the start
   * @param millisLeft until the window ends, and `limits` those in force, as far as the replica knows
   * @param terms those of the waiters that need more than one hit, or a hold
   * @returns times and tickets relative to the start
   */
  async settle(
    tickets: Readonly<Record<string, number>> = {},
    millisLeft = 0,
    limits = '',
    terms: Readonly<Record<string, RequestTerms>> = {},
  ): Promise<SettleReply> {
    const reply = await this.scripts.settle(
      this.harness.names,
      { millisLeft, limits },
      Object.entries(tickets).map(([claim, ticket]) => {
        const { requestId, number: owner } = parseClaim(claim);
        return {
          ticket: this.harness.absoluteTicket(ticket),
          waiter: { request: { ...terms[claim], requestId, owner } },
        };
      }),
    );
    await this.harness.expiry();
    return { ...reply, at: reply.at - this.harness.startMillis };
  }

  /**
   * @param places how many the replica knows of
   * @param knows the number of the last wake, 0 if it is left out
   * @returns whether its lease was renewed
   */
  async renew(
    places: number,
    { wakeNumber = 0, keepsAny = false }: RenewalOptions = {},
  ): Promise<boolean> {
    const { names } = this.harness;
    const notRenewed = await this.scripts.renew([{ names, places, keepsAny, wakeNumber }]);
    await this.harness.expiry();
    return notRenewed.length === 0;
  }

  async release(requestId: string): Promise<boolean> {
    const released = await this.scripts.ask('release', this.harness.names, { requestId });
    await this.harness.expiry();
    return released;
  }

  /** @returns whether there is such an approval */
  async amend(requestId: string, hits: number): Promise<boolean> {
    return (await this.renewHold(requestId, { hits })) !== undefined;
  }

  async renewHold(
    requestId: string,
    amendment: Amendment = {},
  ): Promise<Amended | RejectedAmendment | undefined> {
    const amended = await this.scripts.ask('amend', this.harness.names, {
      requestId,
      ...amendment,
    });
    await this.harness.expiry();
    return amended;
  }

  async pause(millis: number): Promise<void> {
    await this.scripts.ask('pause', this.harness.names, { millis });
    await this.harness.expiry();
  }

  async report(report: RemainingReport): Promise<Remaining | RejectedReport> {
    const reported = await this.scripts.ask('reportRemaining', this.harness.names, report);
    await this.harness.expiry();
    return reported;
  }

  async withdraw(claims: readonly string[]): Promise<void> {
    const [reply] = await this.scripts.withdraw([{ names: this.harness.names, claims }]);
    await this.harness.expiry();
    if (reply instanceof Error) throw reply;
  }

  /** @returns whether the caller of each may be told */
  async confirm(claims: readonly string[]): Promise<readonly boolean[]> {
    const [reply] = await this.scripts.confirm([{ names: this.harness.names, claims }]);
    await this.harness.expiry();
    if (reply instanceof Error) throw reply;
    return reply!.mayBeTold;
  }

  async inspect(): Promise<WithUsed<InspectReply> | undefined> {
    const [reply] = await this.scripts.inspect([this.harness.names]);
    if (reply instanceof Error) throw reply;
    await this.harness.expiry();
    return reply && { ...reply, used: reply.limits[0].used };
  }

  /** What a check would get, and until its turn. */
  async peek(request: Omit<PeekRequest, 'key'> = {}): Promise<Verdict> {
    const { names } = this.harness;
    try {
      const peek = await this.scripts.ask('peek', names, request);
      if (peek.outcome === 'approved') return 'approved';
      return peek.reason === 'too_many_hits' ? 'too many hits' : `turn in ${peek.turnMillis} ms`;
    } catch (error) {
      if (error instanceof UnavailableError && error.reason === 'key_full') return 'key full';
      throw error;
    }
  }

  async status(requestId: string): Promise<RequestStatus | undefined> {
    const [status] = await this.statuses([requestId]);
    return status;
  }

  statuses(requestIds: readonly string[]): ReturnType<Scripts['statuses']> {
    return this.scripts.statuses(this.harness.names, requestIds);
  }

  async examine(mostQueued = 100): Promise<WithUsed<InstanceDetail> | undefined> {
    const reply = await this.scripts.ask('examine', this.harness.names, { mostQueued });
    await this.harness.expiry();
    return reply && { ...reply, used: reply.limits[0].used };
  }

  #verdict(verdict: number): Verdict {
    if (verdict === VERDICT.approved) return 'approved';
    if (verdict === VERDICT.denied) return 'denied';
    if (verdict === VERDICT.queueFull) return 'queue full';
    if (verdict === VERDICT.queueFullOfGroup) return 'queue full of group';
    if (verdict === VERDICT.keyFull) return 'key full';
    if (verdict === VERDICT.storeFull) return 'store full';
    if (verdict === VERDICT.tooManyHits) return 'too many hits';
    if (verdict === VERDICT.paused) return 'paused';
    if (verdict === VERDICT.idUsed) return 'id used';
    if (verdict === VERDICT.otherHits) return 'other hits';
    if (verdict === VERDICT.otherHold) return 'other hold';
    if (verdict === VERDICT.otherHolder) return 'other holder';
    if (verdict === VERDICT.waitExpired) return 'wait expired';
    if (verdict === VERDICT.takenOver) return 'taken over';
    if (verdict <= VERDICT.turnTooLate) {
      return `turn in ${(VERDICT.turnTooLate - verdict) / 1000} ms`;
    }
    return this.harness.relativeTicket(verdict);
  }
}
