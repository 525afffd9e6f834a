import type { CallerPresence } from '../../limiter/request.js';
import { StoreUnavailableError, UnavailableError } from '../../limiter/errors.js';
import type { Waiter } from '../../limiter/waiter.js';
import type { KnownWaiting, QueueState } from '../scripts/check-codec.js';
import type { KeyNames } from '../shared/key-names.js';
import { KeptPlaces, type KeptPlacesParts } from './kept-places.js';
import type { LeasedQueue, LeaseRenewals } from './leases.js';
import { type LocalWaiter, LocalWaiters } from './local-waiters.js';
import { ModeTimer, nextMode, type QueueEvent, type QueueMode } from './queue-mode.js';
import {
  type HeldUntil,
  heldUntilByReply,
  heldUntilByWake,
  type QueueUpdate,
  QueueView,
  type QueueViewParts,
  quotasOf,
} from './queue-view.js';
import {
  SettleCalls,
  type SettleCallsParts,
  type SettleLine,
  type Unsettled,
} from './settle-calls.js';
import type { Wake, WakeChannel, WakeListener } from './wake-channel.js';
import { type Heard, WakeNumbers } from './wake-numbers.js';
import type { WindowLeader } from './window-leader.js';

export interface LocalQueueParts
  extends
    QueueViewParts,
    SettleCallsParts,
    Pick<KeptPlacesParts, 'isAvailable' | 'confirmations' | 'approvals' | 'statuses'> {
  readonly wakes: Pick<WakeChannel, 'listen' | 'unlisten'>;
  readonly renewals: Pick<LeaseRenewals, 'watch' | 'unwatch'>;
  readonly line: Pick<SettleLine, 'add' | 'addLater' | 'remove'>;
  readonly createLeader: () => WindowLeader;
  /** Redis's time, if it is known: never too early. */
  readonly latestTime: () => number | undefined;
  /** Called when there is a place more, or a place less. */
  readonly onSizeChange: (by: 1 | -1) => void;
  /**
   * Called once, when no place remains.
   * @param ended resolves when all calls of this queue have ended; undefined if none is under way
   */
  readonly onOver: (ended: Promise<unknown> | undefined) => void;
}

/**
 * The waiters of one key on this replica, from the question to the decision.
 *
 * {@link TRANSITIONS} has the diagram of its modes. From the first ticket on it listens to the key's wakes, has its
 * lease renewed, and settles at the end of each window: on time as the window leader, else a grace later if no wake
 * has come. Wakes are hints. Only the replies of settle calls are relied on. The numbers of wakes show that one was
 * missed, and the number of its places that Redis has lost some: then a settle asks about all places.
 */
export class LocalQueue implements WakeListener, Unsettled, LeasedQueue {
  #mode: QueueMode = 'asking';
  readonly #waiters = new LocalWaiters();
  readonly #view: QueueView;
  readonly #calls: SettleCalls;
  readonly #timer: ModeTimer;
  readonly #leader: WindowLeader;
  readonly #numbers: WakeNumbers;
  readonly #kept: KeptPlaces;
  /** When a settle is due because the key recovers, by the clock. */
  #recoveryDueAt = Infinity;

  constructor(private readonly parts: LocalQueueParts) {
    this.#view = new QueueView(parts);
    this.#calls = new SettleCalls(this.#waiters, parts);
    this.#timer = new ModeTimer(parts.clock);
    this.#leader = parts.createLeader();
    this.#kept = new KeptPlaces(this.#waiters, {
      ...parts,
      millisToRoom: () => this.#view.millisToRoom(parts.clock.now()),
      withdraw: (claim) => this.#withdraw([claim]),
      remove: (claim) => {
        this.answered(claim);
      },
      calls: this.#calls,
      onDoubted: () => this.settleSoon(),
    });
    this.#numbers = new WakeNumbers(parts.clock, () => this.#doubtAll());
  }

  get mode(): QueueMode {
    return this.#mode;
  }

  get names(): KeyNames {
    return this.parts.names;
  }

  get keepsAny(): boolean {
    return this.#waiters.keepsAny;
  }

  get wakeNumber(): number | undefined {
    return this.#numbers.known;
  }

  get renewalDueAt(): number {
    return this.#mode === 'listening' ? this.parts.lease.renewalDueAt : Infinity;
  }

  /** Whether a check of a request is here whose caller has chosen its id. */
  has(requestId: string): boolean {
    return this.#waiters.has(requestId);
  }

  /** How many waiters here have a ticket. */
  get places(): number {
    return this.#waiters.queued;
  }

  /** The waiters here that have a ticket, if there are any. */
  get known(): KnownWaiting | undefined {
    const { first } = this.#waiters;
    if (!first) return undefined;
    const { requestId } = first.waiter;
    const { millisLeft, limits } = this.#view.window(this.parts.clock.now());
    return { lowestTicket: first.ticket, requestId, millisToWindowEnd: millisLeft, limits };
  }

  /** To be called before Redis is asked: a grant can overtake the answer. */
  ask(waiter: Waiter, caller: CallerPresence | undefined): void {
    this.#fire('asked');
    this.#waiters.ask(waiter, this.parts.clock.now());
    this.parts.onSizeChange(1);
    this.#kept.endOnDisconnect(waiter, caller);
  }

  /**
   * The check was answered with a place in the queue.
   * @param news what Redis said with the ticket
   */
  ticketed(claim: string, ticket: number, millisToRoom: number, news: QueueState): void {
    const asking = this.#waiters.get(claim);
    // A wake that overtook this answer has approved the request.
    if (asking?.state !== 'asking') return;
    const { waiter, askedAt } = asking;
    if (waiter.decided && !waiter.isKept) {
      this.#withdraw([claim]);
      return;
    }
    waiter.keepAgain();
    this.#waiters.giveTicket(claim, ticket);
    this.#startTimers(waiter, Math.max(0, news.at - Math.floor(ticket / 1000)));
    const heard = this.#numbers.replied(news.wakeNumber, askedAt);
    if (heard === 'missed') this.#waiters.doubtAll();
    this.#view.learn(this.parts.clock.now(), heard, { ...news, millisToRoom, waiting: 1 }, true);
    if (this.#mode === 'asking') this.parts.lease.settled(askedAt);
    this.#fire('ticketed');
    this.#settleOrRearm();
  }

  /**
   * The check was decided without a place in the queue, or failed.
   * @returns false if a wake that overtook the answer has approved the request
   */
  answered(claim: string): boolean {
    const removed = this.#remove(claim);
    this.#endIfEmpty();
    return removed !== undefined;
  }

  /**
   * The check of a kept place was approved at once, and its caller has gone. The approval stays for as long as the place
   * would: the caller may come back for it.
   */
  approvedForNobody(claim: string): void {
    this.#waiters.grant(claim);
  }

  /** Fails all waiters because this replica stops. */
  turnAway(): void {
    for (const waiter of this.#waiters.waiters())
      waiter.fail(new UnavailableError('shutting_down'));
    this.#withdraw(this.#waiters.queuedClaims());
  }

  /** Leaves the kept places to other replicas. Redis keeps them for their time. */
  handOver(): void {
    for (const waiter of this.#waiters.waiters()) {
      if (waiter.request.keepMillis === undefined) continue;
      this.#remove(waiter.claimOrId);
      waiter.fail(new UnavailableError('handed_over'));
    }
    this.#endIfEmpty();
  }

  onSubscribed(): void {
    // Messages sent before are lost, and after a failover this may be another Redis.
    this.onMemoryLost();
    // From now on the resignation of the present leader can't be missed.
    this.#volunteer();
  }

  onWake(wake: Wake): void {
    const now = this.parts.clock.now();
    const heard = this.#numbers.woken(wake.number);
    this.#learn(wake, heard, heldUntilByWake(wake, now, this.parts.latestTime()));
    if (heard === 'missed') this.#waiters.doubtAll();
    this.#settleOrRearm();
  }

  onLeaderResigned(): void {
    this.#volunteer();
  }

  onMemoryLost(): void {
    this.#numbers.forget();
    this.#doubtAll();
  }

  /** Redis is up again. Calls may have failed meanwhile, and Redis may have lost its memory. */
  onStoreAvailable(): void {
    // Their callers could not come back before.
    for (const waiter of this.#waiters.waiters()) waiter.keepAgain();
    this.onMemoryLost();
  }

  settleSoon(): void {
    this.#fire('due');
  }

  leaseRenewed(sentAt: number): void {
    if (this.parts.lease.renewed(sentAt, this.parts.clock.now())) this.#fire('due');
  }

  #fire(event: QueueEvent): void {
    const before = this.#mode;
    const mode = nextMode(before, event);
    if (mode === before) return;
    this.#mode = mode;
    this.#timer.cancel();
    switch (mode) {
      case 'listening':
        this.#armForWindow();
        if (before === 'asking') this.parts.wakes.listen(this.parts.names.wakeChannel, this);
        this.parts.renewals.watch(this);
        break;
      case 'inLine':
        if (event === 'failed') this.parts.line.addLater([this]);
        else this.parts.line.add([this]);
        break;
      case 'over':
        this.#numbers.end();
        this.parts.line.remove(this);
        if (before === 'asking') this.parts.onOver(undefined);
        else this.#stopListening();
        break;
      case 'asking':
      case 'settling':
      case 'resettling':
    }
  }

  #doubtAll(): void {
    this.#waiters.doubtAll();
    this.#fire('due');
  }

  #settleOrRearm(): void {
    if (this.#waiters.hasDoubted) this.#fire('due');
    else if (this.#mode === 'listening') this.#armForWindow();
  }

  #endIfEmpty(): void {
    if (this.#waiters.size === 0 && this.#mode !== 'over') this.#fire('emptied');
  }

  #remove(claim: string): LocalWaiter | undefined {
    const removed = this.#waiters.remove(claim);
    if (!removed) return undefined;
    this.parts.onSizeChange(-1);
    if (removed.waiter.request.keepMillis !== undefined) removed.waiter.endPlace();
    return removed;
  }

  /** @param waitedMillis since the request got its ticket */
  #startTimers(waiter: Waiter, waitedMillis: number): void {
    const { claimOrId: claim } = waiter;
    const { keepMillis } = waiter.request;
    const expire = (): void => {
      this.#waiters.expire(claim);
      this.#fire('due');
      // It does not wait for the next retry of the queues that have failed.
      if (this.#mode === 'inLine') this.parts.line.add([this]);
    };
    // Counted from now and not from the arrival, so that it can't expire before a turn that Redis accepted as in time.
    waiter.onceExpired(this.parts.clock, expire, keepMillis === undefined ? 0 : waitedMillis);
    waiter.onceAnswerDue(this.parts.clock, () => void this.#kept.tellPlace(waiter));
  }

  #withdraw(claims: readonly string[]): void {
    for (const claim of claims) this.#remove(claim);
    this.#calls.withdraw(claims);
    this.#endIfEmpty();
  }

  /** Ends waits without an approval. */
  #endWaits(ended: readonly LocalWaiter[], end: (waiter: Waiter) => void): void {
    for (const { waiter } of ended) end(waiter);
    this.#withdraw(ended.map(({ waiter }) => waiter.claimOrId));
  }

  #stopListening(): void {
    this.parts.renewals.unwatch(this);
    this.parts.wakes.unlisten(this.parts.names.wakeChannel, this);
    const resigned = this.#leader.resign(!this.#view.isQueueEmpty);
    this.parts.onOver(Promise.all([resigned, this.#calls.underWay]));
  }

  #volunteer(): void {
    void this.#leader.volunteer(this.#view.roomAt).then(() => {
      if (this.#mode === 'listening') this.#armForWindow();
    });
  }

  async settle(): Promise<void> {
    this.#fire('begun');
    const sentAt = this.parts.clock.now();
    const reply = await this.#calls.settle(this.#view.window(sentAt));
    if (!reply) {
      this.#failExpired(this.#calls.failure);
      this.#fire('failed');
      return;
    }
    this.#recoveryDueAt = this.parts.clock.now() + (reply.millisToSettle ?? Infinity);
    const heard = this.#numbers.replied(reply.wakeNumber, sentAt);
    this.#learn(reply, heard, heldUntilByReply(reply, sentAt));
    // This call did not ask about the doubted ones, which came too late for it.
    const expired = this.#waiters.expired.filter(
      ({ state, isDoubted }) => state === 'queued' && !isDoubted,
    );
    const quotaOf = expired.length === 0 ? undefined : quotasOf(reply);
    if (quotaOf) this.#endWaits(expired, (waiter) => waiter.expire(quotaOf(waiter)));
    // Redis has fewer places than have a ticket here, as when it has lost the key, and another replica has made it again.
    // Grants whose wakes are on their way explain it as long as there is the key, and calls about the doubted places follow anyway.
    const hasKey = reply.millisToRoom !== undefined;
    const isExplained = (hasKey && this.#numbers.isAwaiting) || this.#waiters.hasDoubted;
    const lacksPlaces = !isExplained && reply.places < this.places;
    if (heard === 'missed' || lacksPlaces) this.#waiters.doubtAll();
    if (reply.millisToRoom === 0 || this.#waiters.hasDoubted) this.#fire('due');
    this.#fire('answered');
  }

  notAsked(): void {
    if (this.#waiters.expired.length > 0) this.#failExpired(new StoreUnavailableError());
  }

  #failExpired(error: unknown): void {
    this.#endWaits(this.#waiters.expired, (waiter) => waiter.fail(error));
  }

  /** Learns the state of the queue from Redis, and answers the requests that Redis has approved. */
  #learn(update: QueueUpdate, heard: Heard, heldUntil: HeldUntil): void {
    this.#view.learn(this.parts.clock.now(), heard, update, this.#waiters.queued > 0);
    if (this.#leader.needsTime(this.#view.roomAt)) this.#volunteer();
    const quotaOf = update.granted.length === 0 ? undefined : quotasOf(update);
    // If its record is lost, a settle tells which check an approved request belongs to.
    this.#waiters.doubtRequests(update.granted);
    for (const claim of update.granted) this.#granted(claim, update, quotaOf, heldUntil);
    // If Redis has lost its memory since, a settle from here may have put such places back.
    this.#withdraw(this.#waiters.endWaits(update.ended));
  }

  #granted(
    claim: string,
    { at }: QueueUpdate,
    quotaOf: ReturnType<typeof quotasOf>,
    heldUntil: HeldUntil,
  ): void {
    const waiter = this.#waiters.get(claim)?.waiter;
    if (!waiter) return;
    if (waiter.request.keepMillis !== undefined) {
      this.#kept.granted(waiter, at);
      return;
    }
    const until = heldUntil(waiter);
    if (until <= this.parts.clock.now()) {
      // Its hold may have lapsed, as after this replica has stood still. Redis knows, and puts it back if it has.
      this.#waiters.doubt(claim);
      return;
    }
    this.#remove(claim);
    this.#calls.told(claim, at);
    // If the caller has disconnected, the approval belongs to the next in the queue.
    const release = (): void => this.#withdraw([claim]);
    this.parts.approvals.approve(waiter, release, quotaOf?.(waiter), until);
  }

  #armForWindow(): void {
    this.#timer.arm(Math.min(this.#windowDueAt, this.#recoveryDueAt), () => {
      // No wake has come in time: the leader is dead, or there is none.
      if (this.parts.clock.now() >= this.#windowDueAt) this.#volunteer();
      this.#fire('due');
    });
  }

  get #windowDueAt(): number {
    return this.#view.dueAt(this.#leader.isLeading);
  }
}
