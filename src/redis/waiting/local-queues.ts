import { settleDelay } from '../../limiter/settle-delay.js';
import { ApprovalBatches } from '../../limiter/approval-batches.js';
import type { CallerPresence } from '../../limiter/request.js';
import { StoreUnavailableError, UnavailableError } from '../../limiter/errors.js';
import type { CheckRequest, Decision } from '../../limiter/limiter.js';
import { Waiter } from '../../limiter/waiter.js';
import { type CheckBatcher } from '../checks/check-batcher.js';
import { type CheckReply, denial } from '../checks/check-replies.js';
import { type KnownWaiting, VERDICT } from '../scripts/check-codec.js';
import type { CallerSettings } from '../scripts/shared-arguments.js';
import type { CallsParts } from './batched-calls.js';
import { Confirmations } from './confirmations.js';
import { Lease, LeaseRenewals, leasesUnsettled } from './leases.js';
import { LocalQueue } from './local-queue.js';
import { type SettleLine, settleLine } from './settle-calls.js';
import { StatusCalls } from './status-calls.js';
import { WAKE_GRACE_MILLIS } from '../shared/losses.js';
import { WakeChannel, type WakeMessages } from './wake-channel.js';
import { type CreateMutex, WindowLeader } from './window-leader.js';
import { Withdrawals } from './withdrawals.js';

export interface LocalQueuesParts extends CallsParts, Pick<CallerSettings, 'replicaId'> {
  /** The most requests that may wait here at once, over all keys. */
  readonly maxWaiters: number;
  readonly checks: Pick<CheckBatcher, 'check'>;
  readonly messages: WakeMessages;
  readonly createMutex: CreateMutex;
  /** The time of the shard of a name in Redis: see `CallerHistory`. */
  readonly latestTime: (name: string) => number | undefined;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** A UUID. */
  readonly createRequestId: () => string;
  /** The number of another check whose caller has chosen the request id: no two of this replica have the same. */
  readonly nextClaimNumber: () => number;
}

/** Every request that waits on this replica, or asks for a place: one {@link LocalQueue} for each key. */
export class LocalQueues {
  readonly #queues = new Map<string, LocalQueue>();
  readonly #wakes: WakeChannel;
  readonly #renewals: LeaseRenewals;
  readonly #line: SettleLine;
  readonly #withdrawals: Withdrawals;
  readonly #confirmations: Confirmations;
  readonly #statuses: StatusCalls;
  readonly #approvals: ApprovalBatches;
  /** The calls that are still under way for queues that are over. */
  readonly #ending = new Set<Promise<unknown>>();
  #waiting = 0;
  #candidates = 0;
  #isHandedOver = false;
  #isClosing = false;
  #onLastQueueOver: (() => void) | undefined;

  constructor(private readonly parts: LocalQueuesParts) {
    this.#wakes = new WakeChannel(parts.messages, parts.replicaId, parts.logger);
    this.#renewals = new LeaseRenewals(parts);
    this.#line = settleLine(parts);
    this.#withdrawals = new Withdrawals({
      ...parts,
      isWaitedFor: (key) => this.#queues.has(key),
    });
    this.#confirmations = new Confirmations(parts);
    this.#statuses = new StatusCalls(parts);
    this.#approvals = new ApprovalBatches(parts.ticks, parts.clock);
  }

  /** The number of requests that wait here, or ask for a place. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The number of requests that wait here in a key's queue. */
  waitingOf(key: string): number {
    return this.#queues.get(key)?.places ?? 0;
  }

  /** Whether a request may wait here: one more, or one that takes over a place that waits here. */
  hasPlaceFor({ key, requestId, noPlace = false }: CheckRequest): boolean {
    if (!noPlace && this.#waiting < this.parts.maxWaiters) return true;
    return requestId !== undefined && this.#queues.get(key)?.has(requestId) === true;
  }

  /** The waiters of a key here, if there are any. */
  known(key: string): KnownWaiting | undefined {
    return this.#queues.get(key)?.known;
  }

  /**
   * Asks for permission, and waits for it if it is not given at once.
   * @throws UnavailableError (`shutting_down`, or with `keepMillis` `handed_over`) if the replica stops meanwhile, or has
   * stopped
   * @throws StoreUnavailableError if the store can't be asked
   */
  async checkOrWait(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (this.#isHandedOver && request.keepMillis !== undefined) {
      throw new UnavailableError('handed_over');
    }
    if (this.#isClosing) throw new UnavailableError('shutting_down');
    const { key } = request;
    const { requestId = this.parts.createRequestId() } = request;
    const number = request.requestId === undefined ? undefined : this.parts.nextClaimNumber();
    const waiter = new Waiter(requestId, request, number);
    const { claimOrId: claim } = waiter;
    const queue = this.#queues.get(key) ?? this.#open(key);
    queue.ask(waiter, caller);
    this.parts.checks.check(
      request,
      requestId,
      (reply) => {
        if (reply.verdict > VERDICT.approved) request.trace?.queued();
        this.#answered(key, queue, waiter, reply);
      },
      (error) => {
        if (!queue.answered(claim)) return;
        waiter.fail(error);
        this.checkFailed(request, claim, error);
      },
      number,
    );
    return waiter.decision;
  }

  /**
   * Withdraws a check whose call failed and may have run, since nobody waits for it any more. Where it runs later than this
   * withdrawal, as after a slot has moved, the second one finds it. A kept place is withdrawn when nobody has come for it in
   * time, which begins when the call can run no more.
   */
  checkFailed(request: CheckRequest, claim: string, error: unknown): void {
    const { key, holdMillis = 0, keepMillis } = request;
    if (!(error instanceof StoreUnavailableError) || !error.mayHaveRun) return;
    const withdraw = (): void => {
      if (keepMillis === undefined) this.#withdrawals.add(key, [claim], holdMillis);
      else this.#withdrawals.addLater({ key, claim, keepMillis, holdMillis });
    };
    if (keepMillis === undefined || !error.ended) withdraw();
    void error.ended?.then(withdraw);
  }

  /** Withdraws an approval that nobody uses. */
  giveBack(key: string, claim: string): void {
    this.#withdrawals.add(key, [claim]);
  }

  /** The store is up again. Messages were lost meanwhile, and the store may have lost the queues. */
  onStoreAvailable(): void {
    for (const queue of this.#queues.values()) {
      if (this.parts.isAvailable(queue.names.state)) queue.onStoreAvailable();
    }
    this.#line.retry();
    this.#withdrawals.onStoreAvailable();
    this.#confirmations.retry();
  }

  /** The limits of some keys may have changed, so that waiters may have room. */
  limitsChanged(): void {
    for (const queue of this.#queues.values()) queue.settleSoon();
  }

  /** Leaves all kept places to other replicas. From now on no check gets one here. */
  handOver(): void {
    this.#isHandedOver = true;
    for (const queue of [...this.#queues.values()]) queue.handOver();
  }

  /** Fails all waiters, and resolves when nothing of this replica is left in Redis's queues. */
  async close(): Promise<void> {
    this.handOver();
    this.#isClosing = true;
    for (const queue of [...this.#queues.values()]) queue.turnAway();
    // Requests without a ticket are withdrawn when their answers come, each within a time limit.
    if (this.#queues.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onLastQueueOver = resolve;
      });
    }
    await this.#approvals.allNotified();
    await Promise.all(this.#ending);
    this.#confirmations.close();
    await this.#withdrawals.close();
  }

  #answered(key: string, queue: LocalQueue, waiter: Waiter, reply: CheckReply): void {
    const { claimOrId: claim } = waiter;
    const { verdict, millisToRoom, queueState, place } = reply;
    if (verdict > VERDICT.approved && queueState) {
      // A place that it has taken over keeps its own list.
      if (place) waiter.request = { ...waiter.request, list: place.list };
      queue.ticketed(claim, verdict, millisToRoom, queueState);
      return;
    }
    if (verdict === VERDICT.approved && waiter.isKept) {
      waiter.keepAgain();
      queue.approvedForNobody(claim);
      return;
    }
    if (!queue.answered(claim)) return;
    if (verdict === VERDICT.approved) {
      if (!waiter.approve(reply.quota)) {
        this.#withdrawals.add(key, [claim], waiter.request.holdMillis ?? 0);
      }
      return;
    }
    const decision = denial(reply);
    if (decision instanceof Error) waiter.fail(decision);
    else waiter.decide(decision);
  }

  #open(key: string): LocalQueue {
    const { parts } = this;
    const names = parts.naming.namesOf(key);
    const queue = new LocalQueue({
      ...parts,
      names,
      lease: new Lease(parts.leaseMillis, parts.leaseMillis * leasesUnsettled(parts.random())),
      latestTime: () => parts.latestTime(names.state),
      windowMillis: () => parts.limitsOf(key).limits[0].windowMillis,
      wakes: this.#wakes,
      renewals: this.#renewals,
      line: this.#line,
      approvals: this.#approvals,
      confirmations: this.#confirmations,
      statuses: this.#statuses,
      isAvailable: () => parts.isAvailable(names.state),
      graceMillis: WAKE_GRACE_MILLIS * (1 + parts.random()),
      delayMillis: (storeRoomAt) => settleDelay(key, parts.limitsOf(key).limits, storeRoomAt),
      createLeader: () => {
        this.#candidates += 1;
        return new WindowLeader({
          mutex: parts.createMutex(names.leader, `${parts.replicaId}#${this.#candidates}`),
          announce: () => this.#wakes.announceResignation(names.wakeChannel),
          clock: parts.clock,
          logger: parts.logger,
        });
      },
      withdraw: (claims, holdMillis) => this.#withdrawals.add(key, claims, holdMillis),
      onSizeChange: (by) => {
        this.#waiting += by;
      },
      onOver: (ended) => this.#over(key, ended),
    });
    this.#queues.set(key, queue);
    return queue;
  }

  #over(key: string, ended: Promise<unknown> | undefined): void {
    this.#queues.delete(key);
    if (ended) {
      this.#ending.add(ended);
      void ended.finally(() => this.#ending.delete(ended));
    }
    if (this.#queues.size === 0) this.#onLastQueueOver?.();
  }
}
