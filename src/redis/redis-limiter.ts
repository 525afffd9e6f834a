import { randomUUID } from 'node:crypto';

import type { Logger } from 'pino';

import type { Clock } from '../clock.js';
import { ApprovalsInSlices } from '../limiter/approvals-in-slices.js';
import type { Client } from '../limiter/client.js';
import { ShuttingDownError } from '../limiter/errors.js';
import type { CheckRequest, Decision, Instance, Limiter, Limits } from '../limiter/limiter.js';
import { Waiter } from '../limiter/waiter.js';
import { CheckBatcher, type CheckReply } from './check-batcher.js';
import { disconnect, type Connections } from './connections.js';
import { KeyNaming } from './key-names.js';
import { Scripts, VERDICT } from './scripts.js';
import { mayHaveRun, toLimiterError } from './store-errors.js';
import { BoundaryDriver } from './waiting/boundary-driver.js';
import { LocalQueue } from './waiting/local-queue.js';
import { WakeChannel } from './waiting/wake-channel.js';
import { Withdrawals } from './waiting/withdrawals.js';

/** How many names one SCAN call looks at. What it finds is one page of a listing. */
const SCAN_COUNT = 100;

export interface RedisLimiterOptions {
  readonly connections: Connections;
  readonly limits: Limits;
  readonly keyPrefix: string;
  /** Names this replica among all that share the Redis; unique. */
  readonly replicaId: string;
  /** How long the waiters of a replica that is silent keep their places. */
  readonly leaseMillis: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Lua fragments that stand in for files; tests control Redis's time with it. */
  readonly luaReplacements?: Readonly<Record<string, string>>;
}

/** The limiter that any number of replicas share: its whole state is in Redis. */
export class RedisLimiter implements Limiter {
  readonly #scripts: Scripts;
  readonly #naming: KeyNaming;
  readonly #checks: CheckBatcher;
  readonly #wakes: WakeChannel;
  readonly #withdrawals: Withdrawals;
  readonly #approvals = new ApprovalsInSlices();
  readonly #queues = new Map<string, LocalQueue>();
  readonly #resignations = new Set<Promise<void>>();
  #drivers = 0;
  #isClosing = false;
  #onLastQueueEmpty: (() => void) | undefined;

  constructor(private readonly options: RedisLimiterOptions) {
    const { connections, limits, replicaId, leaseMillis, luaReplacements } = options;
    this.#scripts = new Scripts(connections.commands, {
      limits,
      replicaId,
      leaseMillis,
      replacements: luaReplacements,
    });
    this.#naming = new KeyNaming(options.keyPrefix);
    this.#checks = new CheckBatcher(this.#scripts, this.#naming);
    this.#wakes = new WakeChannel(connections.subscriber, connections.commands, options.logger);
    this.#withdrawals = new Withdrawals(
      this.#scripts,
      this.#naming,
      options.clock,
      options.logger,
      (key) => this.#queues.has(key),
    );
  }

  get waiting(): number {
    let waiting = 0;
    for (const queue of this.#queues.values()) waiting += queue.size;
    return waiting;
  }

  async check(request: CheckRequest, client?: Client): Promise<Decision> {
    if (this.#isClosing) throw new ShuttingDownError();
    if (request.canWait) return this.#checkOrWait(request, client);
    const requestId = randomUUID();
    try {
      const reply = await this.#checks.send(request, requestId);
      return reply.verdict === VERDICT.approved
        ? { outcome: 'approved', requestId }
        : denial(reply);
    } catch (error) {
      this.#withdrawIfItMayHaveRun(error, request.key, requestId);
      throw error;
    }
  }

  release(key: string, requestId: string): Promise<boolean> {
    return this.#scripts.release(this.#naming.namesOf(key), requestId);
  }

  async inspect(key: string): Promise<Instance | undefined> {
    const [reply] = await this.#scripts.inspect([this.#naming.namesOf(key)]);
    if (reply instanceof Error) throw reply;
    return reply && { key, ...reply };
  }

  async *list(): AsyncIterable<readonly Instance[]> {
    let cursor = '0';
    do {
      const [next, names] = await this.#scan(cursor);
      cursor = next;
      if (names.length > 0) yield await this.#inspectAll(names);
    } while (cursor !== '0');
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    for (const queue of [...this.#queues.values()]) queue.turnAway();
    // Those still asking are withdrawn as their answers come; each has a time limit.
    if (this.#queues.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onLastQueueEmpty = resolve;
      });
    }
    await Promise.all(this.#resignations);
    await this.#withdrawals.close();
    await disconnect(this.options.connections);
  }

  #checkOrWait(request: CheckRequest, client: Client | undefined): Promise<Decision> {
    const waiter = new Waiter(randomUUID());
    const { requestId } = waiter;
    const queue = this.#queues.get(request.key) ?? this.#openQueue(request.key);
    queue.add(waiter);
    waiter.withdrawOn(client, () => {
      queue.leave(requestId);
    });
    this.#checks.send(request, requestId).then(
      (reply) => {
        this.#answer(request.key, queue, waiter, reply);
      },
      (error: unknown) => {
        if (!queue.settled(requestId)) return;
        waiter.fail(error);
        this.#withdrawIfItMayHaveRun(error, request.key, requestId);
      },
    );
    return waiter.decision;
  }

  #answer(key: string, queue: LocalQueue, waiter: Waiter, reply: CheckReply): void {
    const { requestId } = waiter;
    if (reply.verdict > VERDICT.approved) {
      queue.queued(requestId, reply.verdict, reply.millisToWindowEnd);
      return;
    }
    if (!queue.settled(requestId)) return;
    if (reply.verdict !== VERDICT.approved) waiter.decide(denial(reply));
    else if (!waiter.approve()) this.#withdrawals.add(key, requestId);
  }

  #openQueue(key: string): LocalQueue {
    const { connections, clock, logger, limits, leaseMillis, replicaId } = this.options;
    const names = this.#naming.namesOf(key);
    const queue = new LocalQueue({
      names,
      scripts: this.#scripts,
      wakes: this.#wakes,
      clock,
      logger,
      leaseMillis,
      windowMillis: limits.windowMillis,
      approvals: this.#approvals,
      createDriver: () => {
        this.#drivers += 1;
        const candidate = `${replicaId}#${this.#drivers}`;
        return new BoundaryDriver(connections.commands, names.driver, candidate, logger);
      },
      withdraw: (requestIds) => {
        this.#withdrawals.add(key, ...requestIds);
      },
      onEmpty: ({ lease, resigned }) => {
        this.#queues.delete(key);
        if (lease) this.#withdrawals.add(key);
        if (resigned) {
          this.#resignations.add(resigned);
          void resigned.finally(() => this.#resignations.delete(resigned));
        }
        if (this.#queues.size === 0) this.#onLastQueueEmpty?.();
      },
    });
    this.#queues.set(key, queue);
    return queue;
  }

  #withdrawIfItMayHaveRun(error: unknown, key: string, requestId: string): void {
    if (mayHaveRun(error)) this.#withdrawals.add(key, requestId);
  }

  async #inspectAll(states: readonly string[]): Promise<Instance[]> {
    const keys = [...new Set(states)].map((state) => this.#naming.keyOf(state));
    const replies = await this.#scripts.inspect(keys.map((key) => this.#naming.namesOf(key)));
    return keys.flatMap((key, i) => {
      const reply = replies[i];
      if (!(reply instanceof Error)) return reply ? [{ key, ...reply }] : [];
      this.options.logger.warn({ err: reply, key }, 'not listed; this name in Redis is not ours');
      return [];
    });
  }

  async #scan(cursor: string): Promise<[cursor: string, names: string[]]> {
    try {
      return await this.options.connections.commands.scan(
        cursor,
        'MATCH',
        this.#naming.statePattern,
        'COUNT',
        SCAN_COUNT,
      );
    } catch (error) {
      throw toLimiterError(error);
    }
  }
}

function denial(reply: CheckReply): Decision {
  return {
    outcome: 'denied',
    reason: reply.verdict === VERDICT.queueFull ? 'queue_full' : 'limit_reached',
    retryAfterMillis: reply.millisToWindowEnd,
  };
}
