import { UnavailableError } from '../../../src/limiter/errors.js';
import { ApprovalBatches } from '../../../src/limiter/approval-batches.js';
import { CallerPresence } from '../../../src/limiter/request.js';
import type { Decision } from '../../../src/limiter/limiter.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { QueueState } from '../../../src/redis/scripts/check-codec.js';
import { Lease, LeaseRenewals, leasesUnsettled } from '../../../src/redis/waiting/leases.js';
import { Confirmations } from '../../../src/redis/waiting/confirmations.js';
import { LocalQueue } from '../../../src/redis/waiting/local-queue.js';
import { type SettleLine, settleLine } from '../../../src/redis/waiting/settle-calls.js';
import { StatusCalls } from '../../../src/redis/waiting/status-calls.js';
import { WakeChannel } from '../../../src/redis/waiting/wake-channel.js';
import type { Wake } from '../../../src/redis/waiting/wake-channel.js';
import { WindowLeader } from '../../../src/redis/waiting/window-leader.js';
import { eventLoop } from '../../../src/common/ticks.js';
import { ManualClock } from '../manual-clock.js';
import { recordLog } from '../recorded-log.js';
import { unobserved } from '../unguarded.js';
import { ScriptedMessages } from './scripted-messages.js';
import { ScriptedMutex } from './scripted-mutex.js';
import { quiet, ScriptedStore } from './scripted-store.js';

export const WINDOW_MILLIS = 1000;
export const GRACE_MILLIS = 60;
/** In Redis's form. */
export const LIMITS = '1000:1:5';
export const LEASE_MILLIS = 30_000;
export const LOOK_AGAIN_MILLIS = leasesUnsettled(0) * LEASE_MILLIS;

/** A waiter of the harness. */
interface HeldWaiter {
  readonly caller: CallerPresence;
  /** The decision or the error, once there is one. */
  outcome: Decision | Error | undefined;
}

/** One local queue whose surroundings the test controls. Time starts at 0. */
export class QueueHarness {
  readonly clock = new ManualClock(0);
  readonly store = new ScriptedStore();
  readonly messages = new ScriptedMessages();
  readonly mutex = new ScriptedMutex();
  readonly log = recordLog('debug');
  readonly names = new KeyNaming('').namesOf('k');
  /** The ids of each withdrawal call. */
  readonly withdrawn: (readonly string[])[] = [];
  size = 0;
  /** Redis's time, as far as the replica knows it. */
  storeTime: number | undefined;
  /** Whether the queue is over, and whether its last calls have ended. */
  over: 'no' | 'ending' | 'ended' = 'no';
  readonly line: SettleLine;
  readonly queue: LocalQueue;
  readonly #waiters = new Map<string, HeldWaiter>();

  constructor() {
    this.store.now = () => this.clock.now();
    const wakes = new WakeChannel(this.messages, 'r1', this.log.logger);
    const { wakeChannel } = this.names;
    this.line = settleLine({
      clock: this.clock,
      isAvailable: () => true,
      observer: unobserved,
    });
    this.queue = new LocalQueue({
      names: this.names,
      store: this.store,
      wakes,
      renewals: new LeaseRenewals({
        store: this.store,
        clock: this.clock,
        leaseMillis: LEASE_MILLIS,
        slotOf: () => 0,
      }),
      line: this.line,
      createLeader: () =>
        new WindowLeader({
          mutex: this.mutex,
          announce: () => wakes.announceResignation(wakeChannel),
          clock: this.clock,
          logger: this.log.logger,
        }),
      clock: this.clock,
      logger: this.log.logger,
      isAvailable: () => true,
      confirmations: new Confirmations({
        store: this.store,
        slotOf: () => 0,
        clock: this.clock,
        ticks: eventLoop,
        logger: this.log.logger,
      }),
      approvals: new ApprovalBatches(eventLoop, this.clock),
      statuses: new StatusCalls({ store: this.store, clock: this.clock, ticks: eventLoop }),
      lease: new Lease(LEASE_MILLIS, LOOK_AGAIN_MILLIS),
      latestTime: () => this.storeTime,
      windowMillis: () => WINDOW_MILLIS,
      graceMillis: GRACE_MILLIS,
      delayMillis: () => 0,
      withdraw: (requestIds) => this.withdrawn.push([...requestIds]),
      onSizeChange: (by) => {
        this.size += by;
      },
      onOver: (ended) => {
        if (this.over !== 'no') throw new Error('over twice');
        this.over = 'ending';
        void Promise.resolve(ended).then(() => (this.over = 'ended'));
      },
    });
  }

  /** Sends a check. */
  ask(requestId: string, maxWaitMillis?: number, holdMillis?: number): void {
    const waiter = new Waiter(requestId, { maxWaitMillis, holdMillis });
    const held: HeldWaiter = { caller: new CallerPresence(), outcome: undefined };
    this.#waiters.set(requestId, held);
    waiter.decision.then(
      (decision) => (held.outcome = decision),
      (error: unknown) => (held.outcome = error as Error),
    );
    this.queue.ask(waiter, held.caller);
  }

  disconnect(requestId: string): void {
    this.#waiters.get(requestId)!.caller.disconnect();
  }

  /** The outcome of a waiter. */
  async outcome(requestId: string): Promise<unknown> {
    await quiet();
    const { outcome } = this.#waiters.get(requestId)!;
    if (outcome instanceof UnavailableError) return outcome.reason;
    return outcome instanceof Error ? outcome.name : outcome?.outcome;
  }

  /** Sends a check that is answered with a ticket. There is room in a second. */
  wait(requestId: string, ticket: number, millisToRoom = WINDOW_MILLIS, holdMillis?: number): void {
    this.ask(requestId, undefined, holdMillis);
    this.ticketed(requestId, ticket, millisToRoom);
  }

  /** Answers a check with a ticket. */
  ticketed(
    requestId: string,
    ticket: number,
    millisToRoom = 500,
    news: Partial<QueueState> = {},
  ): void {
    const { wakeNumber } = this.store;
    const at = this.clock.now();
    this.queue.ticketed(requestId, ticket, millisToRoom, {
      limits: LIMITS,
      wakeNumber,
      at,
      ...news,
    });
  }

  /** Publishes a wake with the next number, unless it says another. */
  wake(wake: Partial<Wake> = {}): void {
    const { number = this.store.wakeNumber + 1 } = wake;
    this.store.wakeNumber = number;
    this.messages.wake(this.names.wakeChannel, { at: this.clock.now(), number, ...wake });
  }

  /** Redis publishes a wake that never comes, or not yet. */
  loseWake(): void {
    this.store.wakeNumber += 1;
  }

  confirmSubscription(): void {
    this.messages.confirm(this.names.wakeChannel);
  }

  /** Adds waiters, subscribes, and answers the first settle call, so that the queue listens. */
  async waitAndListen(tickets: Readonly<Record<string, number>>): Promise<void> {
    for (const [requestId, ticket] of Object.entries(tickets)) this.wait(requestId, ticket);
    this.confirmSubscription();
    await this.store.last.answer({ waiting: Object.keys(tickets).length });
  }

  async advance(millis: number): Promise<void> {
    await quiet();
    await this.clock.advance(millis, { afterTimers: quiet });
  }
}
