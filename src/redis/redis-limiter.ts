import { randomUUID } from 'node:crypto';

import type { Logger } from 'pino';

import type { Clock } from '../clock.js';
import { ApprovalBatches } from '../limiter/approval-batches.js';
import type { CallerPresence } from '../limiter/caller-presence.js';
import {
  ShuttingDownError,
  StoreUnavailableError,
  TooManyWaitersError,
} from '../limiter/errors.js';
import type { CheckRequest, Decision, Instance, Limits, StoreLimiter } from '../limiter/limiter.js';
import { Waiter } from '../limiter/waiter.js';
import { CheckBatcher, type CheckReply } from './check-batcher.js';
import { CallGuard } from './availability/call-guard.js';
import type { Connections } from './connections/connections.js';
import { KeyNaming } from './key-names.js';
import { Listing } from './listing.js';
import { PUBLISH_FRAGMENT, publishFragment } from './publish-fragment.js';
import { Scripts, VERDICT } from './scripts.js';
import type { StoreObserver } from './store-observer.js';
import { WindowLeader } from './waiting/window-leader.js';
import { LocalQueue } from './waiting/local-queue.js';
import { WakeChannel } from './waiting/wake-channel.js';
import { Withdrawals } from './waiting/withdrawals.js';

export interface RedisLimiterOptions {
  readonly connections: Connections;
  readonly limits: Limits;
  readonly keyPrefix: string;
  /** Names this replica among all that share the Redis; unique. */
  readonly replicaId: string;
  /** How long the waiters of a replica that is silent keep their places. */
  readonly leaseMillis: number;
  /** The number of the Redis database that the connections have selected. */
  readonly database: number;
  /** The longest a call to Redis may take. */
  readonly timeoutMillis: number;
  /** How many requests may wait here at once, over all keys. */
  readonly maxWaiters: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: StoreObserver;
  /** Lua fragments that stand in for files; tests control Redis's time with it. */
  readonly luaReplacements?: Readonly<Record<string, string>>;
}

/** The limiter that any number of replicas share: its whole state is in Redis. */
export class RedisLimiter implements StoreLimiter {
  readonly #guard: CallGuard;
  readonly #scripts: Scripts;
  readonly #naming: KeyNaming;
  readonly #listing: Listing;
  readonly #checks: CheckBatcher;
  readonly #wakes: WakeChannel;
  readonly #withdrawals: Withdrawals;
  readonly #approvals = new ApprovalBatches();
  readonly #queues = new Map<string, LocalQueue>();
  readonly #resignations = new Set<Promise<void>>();
  #waiting = 0;
  #candidates = 0;
  #isClosing = false;
  #onLastQueueEmpty: (() => void) | undefined;

  constructor(private readonly options: RedisLimiterOptions) {
    const { connections, database, clock, logger, observer } = options;
    const { isCluster } = connections;
    this.#guard = new CallGuard(options);
    this.#scripts = new Scripts(connections.commands, this.#guard, {
      limits: options.limits,
      replicaId: options.replicaId,
      leaseMillis: options.leaseMillis,
      replacements: {
        [PUBLISH_FRAGMENT]: publishFragment({ isCluster, database }),
        ...options.luaReplacements,
      },
    });
    this.#naming = new KeyNaming(options.keyPrefix, database);
    this.#listing = new Listing(this.#scripts, this.#naming, options);
    this.#checks = new CheckBatcher({
      scripts: this.#scripts,
      naming: this.#naming,
      observer,
      slotOf: (name) => connections.slotOf(name),
      waitingFor: (key) => this.#queues.get(key)?.known,
    });
    this.#wakes = new WakeChannel(connections, logger);
    this.#withdrawals = new Withdrawals(this.#scripts, this.#naming, clock, logger, (key) =>
      this.#queues.has(key),
    );
    this.onAvailabilityChange(() => {
      this.#settleAvailable();
    });
  }

  get waiting(): number {
    return this.#waiting;
  }

  isAvailable(key: string): boolean {
    return !this.#guard.breakers.of(this.#naming.namesOf(key).state).isOpen;
  }

  onAvailabilityChange(listener: () => void): void {
    this.#guard.breakers.onChange(listener);
  }

  async check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (this.#isClosing) throw new ShuttingDownError();
    if (request.canWait) {
      if (this.#waiting >= this.options.maxWaiters) throw new TooManyWaitersError();
      return this.#checkOrWait(request, caller);
    }
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

  list(): AsyncIterable<readonly Instance[]> {
    return this.#listing.pages();
  }

  /** Resolves when a primary has answered that it takes writes: in a cluster, some may be away. */
  async ping(): Promise<void> {
    const { breakers } = this.#guard;
    const names = this.#naming.namesOnEachShard(this.options.connections);
    try {
      await Promise.any(
        names.filter((name) => !breakers.of(name).isOpen).map((name) => breakers.probe(name)),
      );
    } catch (error) {
      throw new StoreUnavailableError({ cause: error });
    }
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
    this.#guard.breakers.dispose();
    await this.options.connections.close();
  }

  #checkOrWait(request: CheckRequest, caller: CallerPresence | undefined): Promise<Decision> {
    const waiter = new Waiter(randomUUID());
    const { requestId } = waiter;
    const queue = this.#queues.get(request.key) ?? this.#openQueue(request.key);
    queue.add(waiter);
    waiter.withdrawOnDisconnect(caller, () => {
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
      onSizeChange: (by) => {
        this.#waiting += by;
      },
      createLeader: () => {
        this.#candidates += 1;
        const candidate = `${replicaId}#${this.#candidates}`;
        return new WindowLeader(connections.commands, names.leader, candidate, logger);
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
    if (error instanceof StoreUnavailableError && error.mayHaveRun) {
      this.#withdrawals.add(key, requestId);
    }
  }

  /** While the store was away nobody was told anything, and it may have forgotten who waits. */
  #settleAvailable(): void {
    for (const [key, queue] of this.#queues) if (this.isAvailable(key)) queue.onStoreAvailable();
  }
}

function denial(reply: CheckReply): Decision {
  return {
    outcome: 'denied',
    reason: reply.verdict === VERDICT.queueFull ? 'queue_full' : 'limit_reached',
    retryAfterMillis: reply.millisToWindowEnd,
  };
}
