import type { Logger } from 'pino';

import type { Clock } from '../../clock.js';
import type { ApprovalBatches } from '../../limiter/approval-batches.js';
import { ShuttingDownError, StoreUnavailableError } from '../../limiter/errors.js';
import type { Waiter } from '../../limiter/waiter.js';
import { backoffMillis } from '../backoff.js';
import type { KeyNames } from '../key-names.js';
import type { KnownWaiting, Scripts, SettleReply, Ticket } from '../scripts.js';
import type { WindowLeader } from './window-leader.js';
import type { Wake, WakeChannel, WakeListener } from './wake-channel.js';

/** How long the others leave the end of a window to the leader; spread, not to knock all at once. */
const FOLLOWER_GRACE_MILLIS = 50;
/** How much of its lease a replica lets pass before it renews it. */
const LEASE_RENEWAL = 1 / 3;
/** The most waiters that one call of `lua/settle.lua` asks about. */
const MAX_ASKED_PER_CALL = 500;
const FIRST_RETRY_MILLIS = 50;

export interface LocalQueueParts {
  readonly names: KeyNames;
  readonly scripts: Scripts;
  readonly wakes: WakeChannel;
  readonly createLeader: () => WindowLeader;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly approvals: ApprovalBatches;
  readonly leaseMillis: number;
  readonly windowMillis: number;
  /** Takes requests that nobody here waits for any more out of Redis. */
  readonly withdraw: (requestIds: readonly string[]) => void;
  /** Called when there is one waiter more, or one less. */
  readonly onSizeChange: (by: 1 | -1) => void;
  /** Called once, when the last waiter has gone; the queue is not used again after that. */
  readonly onEmpty: (leftBehind: LeftBehind) => void;
}

export interface LeftBehind {
  /** Others may still wait, and Redis believes that this replica does. */
  readonly lease: boolean;
  /** Settles when the place of the leader is free, and known to be, where this replica stood for it. */
  readonly resigned: Promise<void> | undefined;
}

/** A waiter, and its ticket once Redis has given it one. */
interface Place {
  readonly waiter: Waiter;
  ticket: number | undefined;
}

/**
 * The waiters of one key that this replica holds.
 *
 *     asking ──ticket──▶ waiting ──wake or settle──▶ approved
 *       │                   │
 *       └──── decided ◀─────┴── client left: withdrawn from Redis
 *
 * While any is waiting the replica listens to the key's wakes, renews its lease, and sees that each
 * window is ended: the elected leader on time, the others a grace later if no wake has come.
 */
export class LocalQueue implements WakeListener {
  readonly #places = new Map<string, Place>();
  readonly #grace = FOLLOWER_GRACE_MILLIS * (1 + Math.random());
  #leader: WindowLeader | undefined;
  #wasSubscribed = false;
  #isOver = false;
  #isSettling = false;
  #settleAgain = false;
  #failures = 0;
  #cancelTimer: (() => void) | undefined;
  #windowEndsAt = 0;
  #leaseRenewalAt = 0;
  #leaseEndsAt = 0;
  #waitingFrom = 0;
  /** Redis may have dropped all our waiters, wherever in the queue they stood. */
  #doubtsAll = false;
  #knownToBeEmpty = false;

  constructor(private readonly parts: LocalQueueParts) {}

  /** Where it can be said at once: they were sent in the order in which they stand here. */
  get known(): KnownWaiting | undefined {
    const [first] = this.#places.values();
    if (first?.ticket === undefined) return undefined;
    return { lowestTicket: first.ticket, millisToWindowEnd: this.#millisToWindowEnd() };
  }

  /** To be called before Redis is asked, since an approval from the queue can overtake the answer. */
  add(waiter: Waiter): void {
    this.#places.set(waiter.requestId, { waiter, ticket: undefined });
    this.parts.onSizeChange(1);
  }

  /** The check was answered with a place in the queue. */
  queued(requestId: string, ticket: number, millisToWindowEnd: number): void {
    const place = this.#places.get(requestId);
    if (!place) return;
    if (place.waiter.decided) {
      this.#forget(requestId);
      this.parts.withdraw([requestId]);
      return this.#stopIfEmpty();
    }
    place.ticket = ticket;
    this.#knownToBeEmpty = false;
    this.#learnWindowEnd(millisToWindowEnd);
    if (!this.#leader) this.#start();
    else if (ticket < this.#waitingFrom) this.#settle();
  }

  /** The check was decided without a wait, or failed. @returns false where that is no news. */
  settled(requestId: string): boolean {
    const isNews = this.#forget(requestId);
    this.#stopIfEmpty();
    return isNews;
  }

  /** The client of a request has left. One that is still asking is withdrawn when it is answered. */
  leave(requestId: string): void {
    if (this.#places.get(requestId)?.ticket === undefined) return;
    this.#forget(requestId);
    this.parts.withdraw([requestId]);
    this.#stopIfEmpty();
  }

  /** Turns everyone away because this replica stops. */
  turnAway(): void {
    const left: string[] = [];
    for (const [requestId, { waiter, ticket }] of this.#places) {
      waiter.fail(new ShuttingDownError());
      if (ticket !== undefined) left.push(requestId);
    }
    for (const requestId of left) this.#forget(requestId);
    if (left.length > 0) this.parts.withdraw(left);
    this.#stopIfEmpty();
  }

  onSubscribed(): void {
    // A subscription that had to be made again may be one to another Redis, after a failover.
    if (this.#wasSubscribed) this.#doubtsAll = true;
    this.#wasSubscribed = true;
    this.#settle();
    // Not before: the resignation of the leader that stands in our way can't be missed from now on.
    this.#volunteer();
  }

  onWake(wake: Wake): void {
    this.#learn(wake);
    if (this.#isOver) return;
    if (this.#missed().length > 0) this.#settle();
    else this.#schedule();
  }

  onLeaderResigned(): void {
    this.#volunteer();
  }

  onMemoryLost(): void {
    this.#doubtsAll = true;
    this.#settle();
  }

  /** Redis can be asked again, which may have failed meanwhile, or lost what it knew. */
  onStoreAvailable(): void {
    this.onMemoryLost();
  }

  #start(): void {
    this.#leader = this.parts.createLeader();
    this.#leaseRenewed(this.parts.clock.now());
    this.parts.wakes.listen(this.parts.names.wakeChannel, this);
    this.#schedule();
  }

  #stopIfEmpty(): void {
    if (this.#places.size > 0 || this.#isOver) return;
    this.#isOver = true;
    this.#cancelTimer?.();
    const leader = this.#leader;
    if (leader) this.parts.wakes.unlisten(this.parts.names.wakeChannel, this);
    this.parts.onEmpty({
      lease: leader !== undefined && !this.#knownToBeEmpty,
      resigned: leader && this.#resign(leader),
    });
  }

  async #resign(leader: WindowLeader): Promise<void> {
    const wasLeading = await leader.resign();
    if (wasLeading && !this.#knownToBeEmpty) {
      await this.parts.wakes.announceResignation(this.parts.names.wakeChannel);
    }
  }

  #volunteer(): void {
    void this.#leader?.volunteer().then(() => {
      this.#schedule();
    });
  }

  #forget(requestId: string): boolean {
    const isNews = this.#places.delete(requestId);
    if (isNews) this.parts.onSizeChange(-1);
    return isNews;
  }

  /** Takes in what Redis says of the queue as a whole, and answers those it has approved. */
  #learn(news: Wake | SettleReply): void {
    const millisToWindowEnd =
      'windowEndsInMillis' in news ? news.windowEndsInMillis : news.millisToWindowEnd;
    // 0: Redis knows no such key, and what we remember is all there is.
    if (millisToWindowEnd > 0) this.#learnWindowEnd(millisToWindowEnd);
    this.#waitingFrom = news.waitingFrom;
    this.#knownToBeEmpty = news.waiting === 0;
    for (const requestId of news.granted) this.#granted(requestId);
    this.#stopIfEmpty();
  }

  /** Each answer tells it too late by its own way to us, so the earliest said is the nearest. */
  #learnWindowEnd(millisLeft: number): void {
    const now = this.parts.clock.now();
    const endsAt = now + millisLeft;
    const isOfNextWindow = endsAt > this.#windowEndsAt + this.parts.windowMillis / 2;
    if (endsAt < this.#windowEndsAt || isOfNextWindow || now >= this.#windowEndsAt) {
      this.#windowEndsAt = endsAt;
    }
  }

  #granted(requestId: string): void {
    const place = this.#places.get(requestId);
    if (!place) return;
    this.#forget(requestId);
    this.parts.approvals.approve(place.waiter, () => {
      // The client has left: the approval belongs to the next in the queue.
      this.parts.withdraw([requestId]);
    });
  }

  #millisToWindowEnd(): number {
    return Math.max(0, Math.round(this.#windowEndsAt - this.parts.clock.now()));
  }

  #leaseRenewed(now: number): void {
    this.#leaseRenewalAt = now + this.parts.leaseMillis * LEASE_RENEWAL;
    this.#leaseEndsAt = now + this.parts.leaseMillis;
  }

  /** Those whose tickets have left the queue although nobody told us of an approval. */
  #missed(): Ticket[] {
    const missed: Ticket[] = [];
    for (const [requestId, { ticket }] of this.#places) {
      if (ticket === undefined) continue;
      if (this.#doubtsAll || ticket < this.#waitingFrom) missed.push({ requestId, ticket });
    }
    return missed.sort((a, b) => a.ticket - b.ticket);
  }

  #schedule(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (!this.#leader || this.#isOver || this.#isSettling) return;
    const { clock } = this.parts;
    const windowDue = this.#windowEndsAt + (this.#leader.isLeading ? 0 : this.#grace);
    const due = Math.min(windowDue, this.#leaseRenewalAt);
    this.#cancelTimer = clock.after(due - clock.now(), () => {
      // No wake has come in time: the leader is dead or there is none.
      if (clock.now() >= windowDue) this.#volunteer();
      this.#settle();
    });
  }

  #settle(): void {
    this.#settleAgain = true;
    if (this.#isSettling) return;
    this.#isSettling = true;
    void this.#settleUntilQuiet();
  }

  async #settleUntilQuiet(): Promise<void> {
    try {
      while (this.#settleAgain && !this.#isOver) {
        this.#settleAgain = false;
        await this.#ask([]);
        await this.#askAboutMissed();
      }
      this.#failures = 0;
      this.#isSettling = false;
      this.#schedule();
    } catch (error) {
      this.#retryLater(error);
    }
  }

  async #askAboutMissed(): Promise<void> {
    const missed = this.#missed();
    this.#doubtsAll = false;
    for (let first = 0; first < missed.length; first += MAX_ASKED_PER_CALL) {
      const stillHeld = missed
        .slice(first, first + MAX_ASKED_PER_CALL)
        .filter(({ requestId }) => this.#places.has(requestId));
      if (stillHeld.length > 0) await this.#ask(stillHeld);
    }
  }

  async #ask(askedAbout: readonly Ticket[]): Promise<void> {
    const { scripts, names, clock } = this.parts;
    // After a lapse of the lease we may have been taken for dead.
    if (clock.now() >= this.#leaseEndsAt) this.#doubtsAll = true;
    const reply = await scripts.settle(names, this.#millisToWindowEnd(), askedAbout);
    this.#leaseRenewed(clock.now());
    this.#learn(reply);
  }

  #retryLater(error: unknown): void {
    this.#failures += 1;
    this.#doubtsAll = true;
    const { logger, clock, names } = this.parts;
    // That the store is away is logged where it is noticed, and not for every key.
    const level = error instanceof StoreUnavailableError ? 'debug' : 'warn';
    if (this.#failures === 1) {
      logger[level](
        { err: error, state: names.state },
        'settle failed; those who wait go on waiting',
      );
    }
    this.#isSettling = false;
    if (this.#isOver) return;
    this.#cancelTimer?.();
    this.#cancelTimer = clock.after(backoffMillis(this.#failures, FIRST_RETRY_MILLIS), () => {
      this.#settle();
    });
  }
}
