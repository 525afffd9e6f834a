import { newUuid } from '../common/uuid.js';

import { type CallerPresence, claimOf, nextClaimNumber } from '../limiter/request.js';
import { StoreUnavailableError, UnavailableError } from '../limiter/errors.js';
import type {
  Answer,
  Asked,
  CheckRequest,
  Decision,
  InstanceState,
  OperationFunctions,
  OperationName,
  StoreCondition,
  StoreLimiter,
} from '../limiter/limiter.js';
import { inOrder } from '../common/steps.js';
import { eventLoop } from '../common/ticks.js';
import type { BreakersParts } from './availability/breakers.js';
import { CallGuard } from './availability/call-guard.js';
import { CallerHistory, type CallerHistoryParts } from './caller-history.js';
import { CheckBatcher } from './checks/check-batcher.js';
import {
  type CheckReply,
  denial,
  lapsedBeforeAnswer,
  mayHaveLapsed,
} from './checks/check-replies.js';
import { findHeld, type HeldApproval, MOST_LOOKED_AT, toHoldings } from '../limiter/holdings.js';
import { KeyNaming } from './shared/key-names.js';
import { Listing } from './listing.js';
import { type OwnReports, ReplicaReports } from './replica-reports.js';
import { VERDICT } from './scripts/check-codec.js';
import { FIRST_PAGE, type PageOfHolds } from './scripts/looks-codec.js';
import type { ScriptedOperation } from './scripts/operations.js';
import { Scripts, type ScriptSettings } from './scripts/scripts.js';
import { redisMutexes } from './waiting/window-leader.js';
import { LocalQueues, type LocalQueuesParts } from './waiting/local-queues.js';
import type { WakeMessages } from './waiting/wake-channel.js';

/** A larger page would block other callers of Redis for too long. */
const HOLDS_PER_PAGE = 250;

export interface RedisLimiterOptions
  extends
    BreakersParts,
    Pick<CallerHistoryParts, 'rulesLoadedAt' | 'readTime'>,
    Pick<LocalQueuesParts, 'limitsOf' | 'replicaId' | 'leaseMillis' | 'maxWaiters'>,
    Pick<ScriptSettings, 'maxIdsPerKey' | 'maxHoldsPerKey' | 'maxGroupsPerKey' | 'replacements'> {
  readonly keyPrefix: string;
  /** The number of the Redis database that the connections have selected. */
  readonly database: number;
}

/** The limiter for any number of replicas. Its whole state is in Redis. */
export class RedisLimiter implements StoreLimiter {
  readonly #guard: CallGuard;
  readonly #scripts: Scripts;
  readonly #naming: KeyNaming;
  readonly #history: CallerHistory;
  readonly #listing: Listing;
  readonly #checks: CheckBatcher;
  readonly #queues: LocalQueues;
  #isClosing = false;

  constructor(private readonly options: RedisLimiterOptions) {
    const { connections, database } = options;
    this.#guard = new CallGuard(options);
    this.#naming = new KeyNaming(options.keyPrefix, database);
    this.#history = new CallerHistory(options);
    this.#scripts = new Scripts({ ...options, ticks: eventLoop }, this.#guard, {
      ...options,
      historyOf: (name) => this.#history.of(name),
      timeOf: (name) => this.#history.latestTime(name) ?? options.clock.now(),
      wakeArgument: this.#naming.wakeArgument(connections),
    });
    this.#listing = new Listing(this.#scripts, this.#naming, options);
    this.#checks = new CheckBatcher({
      scripts: this.#scripts,
      naming: this.#naming,
      observer: options.observer,
      ticks: eventLoop,
      clock: options.clock,
      shardOf: (name) => connections.shardOf(name),
      waitingFor: (key) => this.#queues.known(key),
    });
    this.#queues = new LocalQueues({
      ...options,
      checks: this.#checks,
      store: this.#scripts,
      messages: this.#messages,
      createMutex: redisMutexes(connections.commands, this.#guard, options.clock),
      naming: this.#naming,
      slotOf: (name) => connections.slotOf(name),
      latestTime: (name) => this.#history.latestTime(name),
      isAvailable: (name) => !this.#guard.breakers.of(name).isOpen,
      ticks: eventLoop,
      random: Math.random,
      createRequestId: newUuid,
      nextClaimNumber,
    });
    this.#guard.breakers.onChange((isOpen) => {
      if (!isOpen) this.#queues.onStoreAvailable();
    });
  }

  waiting(key?: string): number {
    return key === undefined ? this.#queues.waiting : this.#queues.waitingOf(key);
  }

  get #messages(): WakeMessages {
    const { connections } = this.options;
    return {
      subscriber: connections.subscriber,
      publish: (channel, message) =>
        this.#guard.run({
          script: 'publish',
          name: channel,
          size: 1,
          isWrite: false,
          isRepeatable: true,
          send: () => connections.publish(channel, message),
        }),
    };
  }

  /** @param own what this replica tells the others while somebody looks at the dashboard */
  openReports(own: OwnReports): ReplicaReports {
    return new ReplicaReports({
      ...this.options,
      naming: this.#naming,
      commands: this.options.connections.commands,
      messages: this.#messages,
      guard: this.#guard,
      scripts: this.#scripts,
      own,
    });
  }

  isAvailable(key: string): boolean {
    return !this.#guard.breakers.of(this.#naming.namesOf(key).state).isOpen;
  }

  onAvailabilityChange(listener: () => void): void {
    this.#guard.breakers.onChange(listener);
  }

  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (this.#isClosing) return Promise.reject(new UnavailableError('shutting_down'));
    if (request.canWait && this.#queues.hasPlaceFor(request)) {
      return this.#queues.checkOrWait(
        request.noPlace ? { ...request, noPlace: false } : request,
        caller,
      );
    }
    return this.#checkAtOnce(request.canWait ? { ...request, noPlace: true } : request);
  }

  ask<Name extends OperationName>(operation: Name, asked: Asked<Name>): Promise<Answer<Name>> {
    return this.#operations[operation](asked);
  }

  list(): AsyncIterable<readonly InstanceState[]> {
    return this.#listing.pages();
  }

  limitsChanged(): void {
    this.#queues.limitsChanged();
  }

  /** Resolves when one primary has answered that it accepts writes. In a cluster other primaries may be down. */
  async ping(): Promise<StoreCondition> {
    const { breakers } = this.#guard;
    const { connections } = this.options;
    const names = this.#naming.namesOnEachShard(connections.primaries().size, (name) =>
      connections.shardOf(name),
    );
    try {
      return await Promise.any(
        names.filter((name) => !breakers.of(name).isOpen).map((name) => breakers.probe(name)),
      );
    } catch (error) {
      throw new StoreUnavailableError({ cause: error });
    }
  }

  #inOneCall<Name extends ScriptedOperation>(
    operation: Name,
    asked: Asked<Name>,
  ): Promise<Answer<Name>> {
    return this.#scripts.ask(operation, this.#naming.namesOf(asked.key), asked);
  }

  readonly #operations: OperationFunctions = {
    release: (asked) => this.#inOneCall('release', asked),
    pause: (asked) => this.#inOneCall('pause', asked),
    reportRemaining: (asked) => this.#inOneCall('reportRemaining', asked),
    refund: (asked) => this.#inOneCall('refund', asked),
    peek: (asked) => this.#inOneCall('peek', asked),
    examine: (asked) => this.#inOneCall('examine', asked),

    amend: async (asked) => {
      const { clock } = this.options;
      const sentAt = clock.now();
      const amended = await this.#inOneCall('amend', asked);
      if (amended && 'holdMillis' in amended && mayHaveLapsed(amended, clock.now() - sentAt)) {
        throw lapsedBeforeAnswer();
      }
      return amended;
    },

    giveBack: ({ key, claim }) => {
      this.#queues.giveBack(key, claim);
      return Promise.resolve(true);
    },

    statusOf: async ({ key, requestId }) => {
      const [status] = await this.#scripts.statuses(this.#naming.namesOf(key), [requestId]);
      return status;
    },

    inspect: async ({ key }) => {
      const [reply] = await this.#scripts.inspect([this.#naming.namesOf(key)]);
      if (reply instanceof Error) throw reply;
      return reply && { key, ...reply };
    },

    holdings: async ({ key }) => {
      const held: HeldApproval[] = [];
      for await (const page of this.#pagesOfHolds(key)) {
        held.push(...page);
        if (held.length >= MOST_LOOKED_AT) break;
      }
      return toHoldings(key, held);
    },

    endHold: async ({ key, handle }) => {
      for await (const page of this.#pagesOfHolds(key)) {
        const found = findHeld(key, page, handle);
        if (found) return this.#inOneCall('release', { key, requestId: found.requestId });
      }
      return false;
    },
  };

  async *#pagesOfHolds(key: string): AsyncIterable<readonly HeldApproval[]> {
    const names = this.#naming.namesOf(key);
    for (let cursor: string | undefined = FIRST_PAGE; cursor !== undefined;) {
      const page: PageOfHolds = await this.#scripts.holders(names, cursor, HOLDS_PER_PAGE);
      yield page.held;
      cursor = page.next;
    }
  }

  /** Decides a check that may not wait, or has no place to wait in. */
  #checkAtOnce(request: CheckRequest): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const { requestId = newUuid() } = request;
      const number = request.requestId === undefined ? undefined : nextClaimNumber();
      const claim = claimOf(requestId, number);
      const onReply = (reply: CheckReply): void => {
        const { verdict, quota } = reply;
        const decision =
          verdict === VERDICT.approved
            ? ({ outcome: 'approved', requestId, claim, quota } as const)
            : denial(reply);
        if (decision instanceof Error) reject(decision);
        else resolve(decision);
      };
      const onFailed = (error: Error): void => {
        this.#queues.checkFailed(request, claim ?? requestId, error);
        reject(error);
      };
      this.#checks.check(request, requestId, onReply, onFailed, number);
    });
  }

  handOver(): void {
    this.#queues.handOver();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await inOrder([
      () => this.#queues.close(),
      () => this.#guard.breakers.dispose(),
      () => this.#history.dispose(),
      () => this.options.connections.close(),
      () => this.#guard.close(),
    ]);
  }
}
