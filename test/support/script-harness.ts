import type { Redis } from 'ioredis';

import type { Limits } from '../../src/limiter/limiter.js';
import { type KeyNames, KeyNaming } from '../../src/redis/key-names.js';
import {
  type BatchedCheck,
  type InspectReply,
  type KnownWaiting,
  Scripts,
  type SettleReply,
  VERDICT,
} from '../../src/redis/scripts.js';
import { controlledRedisTime, startOfControlledTime } from './redis-time.js';
import { unguarded } from './unguarded.js';
import { uniqueKey } from './unique-key.js';

/** What the scripts of a test get where it does not say otherwise. */
export const TEST_LIMITS: Limits = { windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 3 };
export const TEST_LEASE_MILLIS = 5000;

export interface Overrides {
  readonly maxRequests?: number;
  readonly maxRequestsInQueue?: number;
}

/** A number is a ticket, relative to {@link ScriptHarness.startMillis}, in microseconds. */
export type Verdict = 'approved' | 'denied' | 'queue full' | number;

/**
 * Everything that Redis holds of one key. Times are milliseconds, and tickets microseconds, after
 * {@link ScriptHarness.startMillis}.
 */
export interface StoredKey {
  readonly state: Readonly<Record<string, number | string>> | undefined;
  /** Sorted. */
  readonly requests: readonly string[];
  /** Members with their tickets, from the head on. */
  readonly queue: readonly (readonly [member: string, ticket: number])[];
  /** Until when each replica's lease runs. */
  readonly replicas: Readonly<Record<string, number>>;
  /** When Redis removes each key that exists. */
  readonly expiry: Readonly<Record<string, number>>;
}

export interface ReplicaOptions {
  readonly limits?: Partial<Limits>;
  readonly leaseMillis?: number;
  /** The connection that the scripts are called on, where it is another one. */
  readonly client?: Redis;
}

const NO_EXPIRY = -1;
const NOT_THERE = -2;

/** One limiter key of its own in a real Redis, with Redis's clock under the test's control. */
export class ScriptHarness {
  readonly startMillis = startOfControlledTime();
  readonly names: KeyNames = new KeyNaming('sluice:').namesOf(uniqueKey());
  readonly #time;

  private constructor(readonly client: Redis) {
    this.#time = controlledRedisTime(client);
  }

  /** Starts with the clock at 0. */
  static async create(client: Redis): Promise<ScriptHarness> {
    const harness = new ScriptHarness(client);
    await harness.setTime(0);
    return harness;
  }

  /** The fragment that puts Redis's clock under control, see {@link Scripts}. */
  get replacements(): Readonly<Record<string, string>> {
    return this.#time.replacements;
  }

  /** Sets Redis's clock to this many milliseconds after the start. */
  setTime(millis: number): Promise<void> {
    return this.#time.set(this.startMillis + millis);
  }

  replica(replicaId: string, options: ReplicaOptions = {}): TestReplica {
    const scripts = new Scripts(options.client ?? this.client, unguarded, {
      limits: { ...TEST_LIMITS, ...options.limits },
      replicaId,
      leaseMillis: options.leaseMillis ?? TEST_LEASE_MILLIS,
      replacements: this.replacements,
    });
    return new TestReplica(this, scripts);
  }

  async stored(): Promise<StoredKey> {
    const { state, requests, queue, replicas } = this.names;
    const [stateFields, requestIds, waiting, leases, expiry] = await Promise.all([
      this.client.hgetall(state),
      this.client.smembers(requests),
      this.client.zrange(queue, 0, '-1', 'WITHSCORES'),
      this.client.hgetall(replicas),
      this.expiry(),
    ]);
    return {
      state: Object.keys(stateFields).length === 0 ? undefined : this.#readState(stateFields),
      requests: requestIds.sort(),
      queue: waiting.flatMap((member, i) =>
        i % 2 === 0 ? [[member, this.relativeTicket(Number(waiting[i + 1]))] as const] : [],
      ),
      replicas: Object.fromEntries(
        Object.entries(leases).map(([id, until]) => [id, Number(until) - this.startMillis]),
      ),
      expiry,
    };
  }

  /** When Redis removes each key that exists; it fails where one never would be. */
  async expiry(): Promise<Record<string, number>> {
    const expiry: Record<string, number> = {};
    for (const name of ['state', 'requests', 'queue', 'replicas'] as const) {
      const at = await this.client.pexpiretime(this.names[name]);
      if (at === NO_EXPIRY) throw new Error(`${name} has no expiry`);
      if (at !== NOT_THERE) expiry[name] = at - this.startMillis;
    }
    return expiry;
  }

  relativeTicket(ticket: number): number {
    return ticket - this.startMillis * 1000;
  }

  absoluteTicket(ticket: number): number {
    return ticket + this.startMillis * 1000;
  }

  #readState(fields: Readonly<Record<string, string>>): Record<string, number | string> {
    const { overridden = '', held, ...numbers } = fields;
    const state = Object.fromEntries(
      Object.entries(numbers).map(([name, value]) => [name, Number(value)]),
    );
    for (const moment of ['start', 'expires', 'born']) state[moment]! -= this.startMillis;
    state.ticket = this.relativeTicket(state.ticket!);
    return {
      ...state,
      overridden,
      held: held === '0' ? 'no' : Number(held) - this.startMillis,
    };
  }
}

/**
 * One replica's calls of the scripts on the harness's key. After each call every key that exists
 * must have an expiry.
 */
export class TestReplica {
  constructor(
    private readonly harness: ScriptHarness,
    readonly scripts: Scripts,
  ) {}

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

  /** @param waiting what the replica knows of its waiters, the ticket relative to the start */
  async checkBatch(
    checks: readonly BatchedCheck[],
    overrides?: Overrides,
    waiting?: KnownWaiting,
  ): Promise<Verdict[]> {
    const [reply] = await this.scripts.check([
      {
        names: this.harness.names,
        overrides: {
          maxRequests: overrides?.maxRequests,
          maxRequestsInQueue: overrides?.maxRequestsInQueue,
        },
        waiting: waiting && {
          ...waiting,
          lowestTicket: this.harness.absoluteTicket(waiting.lowestTicket),
        },
        checks,
      },
    ]);
    if (reply instanceof Error) throw reply;
    await this.harness.expiry();
    return reply!.verdicts.map((verdict) => this.#verdict(verdict));
  }

  /**
   * @param tickets the waiters asked about, with their tickets relative to the start
   * @param millisToWindowEnd as far as the replica knows
   */
  async settle(
    tickets: Readonly<Record<string, number>> = {},
    millisToWindowEnd = 0,
  ): Promise<SettleReply> {
    const reply = await this.scripts.settle(
      this.harness.names,
      millisToWindowEnd,
      Object.entries(tickets).map(([requestId, ticket]) => ({
        requestId,
        ticket: this.harness.absoluteTicket(ticket),
      })),
    );
    await this.harness.expiry();
    return { ...reply, waitingFrom: this.harness.relativeTicket(reply.waitingFrom) };
  }

  async release(requestId: string): Promise<boolean> {
    const released = await this.scripts.release(this.harness.names, requestId);
    await this.harness.expiry();
    return released;
  }

  async cancel(requestIds: readonly string[], endsLease = false): Promise<void> {
    await this.scripts.cancel(this.harness.names, requestIds, endsLease);
    await this.harness.expiry();
  }

  async inspect(): Promise<InspectReply | undefined> {
    const [reply] = await this.scripts.inspect([this.harness.names]);
    if (reply instanceof Error) throw reply;
    await this.harness.expiry();
    return reply;
  }

  #verdict(verdict: number): Verdict {
    if (verdict === VERDICT.approved) return 'approved';
    if (verdict === VERDICT.denied) return 'denied';
    if (verdict === VERDICT.queueFull) return 'queue full';
    return this.harness.relativeTicket(verdict);
  }
}
