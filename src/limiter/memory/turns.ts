import type { CheckRequest } from '../limiter.js';
import type { QueueList } from '../queue-order.js';
import type { RequestTerms } from '../request.js';
import type { Approvals } from './approvals.js';
import { millisUntil, unlessPaused } from './limits/counted-limit.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import type { RulesInForce } from './rules-in-force.js';

/** Waiters that are let go at an even pace are settled no more often than this, in milliseconds. */
const LEAST_BETWEEN_SETTLES = 20;

/** One hit, which the limits have no room for that count all lists. */
const ANYBODY: readonly RequestTerms[] = [{}];

/** When those who wait for a key have their turns, as of its last operation. */
export class Turns {
  /**
   * @param pausedUntil -Infinity if the key is not paused
   * @param servedAt when a waiter was approved last
   */
  constructor(
    private readonly approvals: Approvals,
    private readonly queue: WaitingQueue,
    private readonly rules: RulesInForce,
    private readonly pausedUntil: number,
    private readonly servedAt: number | undefined,
  ) {}

  /** When waiters may have room next. */
  get exactRoomAt(): number {
    const { approvals, rules, pausedUntil, servedAt = -Infinity } = this;
    const { window, limits } = approvals;
    const times = this.#stopped.map((each) => this.#roomForOthers(each) ?? this.#roomFor(each));
    const first = Math.min(this.#groupsRoomAt, ...times);
    // Otherwise only a release can make room, or other rules.
    const roomAt = first < Infinity ? first : window.end;
    const pacedAt = approvals.havePace
      ? Math.max(roomAt, servedAt + LEAST_BETWEEN_SETTLES)
      : roomAt;
    const ofGroups = approvals.groups?.declared.length ?? 0;
    const changeAt = rules.limitsChangeAt(window, limits.length + ofGroups);
    return Math.min(pacedAt, Math.max(changeAt, pausedUntil));
  }

  /**
   * The least time until the turn of a check, if nobody left the queue and nothing was released before.
   * @param before how many wait before it in its list, each for one hit at least; by default all
   */
  millisToTurn(
    now: number,
    waiting: RequestTerms,
    before = this.queue.countIn(waiting.list),
  ): number {
    const later = this.rules.later(this.approvals.window);
    const turn = this.approvals.millisToTurn(now, before, waiting, later);
    const roomAt = Math.max(this.#leastRoomAt(waiting), this.#groupPausedUntil(waiting.list));
    return Math.max(millisUntil(roomAt, now), turn);
  }

  /** The same, but with a maximum of 0, for which no turn ever comes, the time until the limits may have room. */
  finiteMillisToTurn(now: number, waiting: RequestTerms, before?: number): number {
    const turn = this.millisToTurn(now, waiting, before);
    return turn < Infinity ? turn : millisUntil(this.exactRoomAt, now);
  }

  /** What stops a group alone; undefined if the key stops all, or nothing does. */
  stopOf(list: QueueList | undefined): string | undefined {
    if (list?.kind !== 'group' || this.#isClosed) return undefined;
    const head = this.queue.stoppedHead(list.name);
    return head && this.approvals.groups?.reasonOfStop(list.name, head.hits ?? 1)?.stoppedBy;
  }

  /** Returns why a check can't wait for its turn; undefined if it can. */
  refusalToWait(
    now: number,
    request: CheckRequest,
  ): 'queue_full' | 'queue_full_of_group' | 'key_full' | 'turn_too_late' | 'no_place' | undefined {
    // With a maximum of 0 no turn ever comes.
    const isClosed = this.approvals.limitsOf(request.list).some(({ maximum }) => maximum === 0);
    const places = isClosed ? 0 : this.rules.maxRequestsInQueue;
    if (this.queue.size >= places) return 'queue_full';
    const { list } = request;
    const { maxRequests = Infinity } = list?.kind === 'group' ? list : {};
    if (this.queue.countIn(list) >= maxRequests) return 'queue_full_of_group';
    if (this.approvals.isFullForGroup(request)) return 'key_full';
    if (this.#isTooLate(now, request)) return 'turn_too_late';
    return request.noPlace ? 'no_place' : undefined;
  }

  /**
   * Whether a check would have to wait longer than it can. Where an approval is held now, or something was given back in
   * this window or the last, a release can be expected, and the check waits until its time is over.
   */
  #isTooLate(now: number, request: CheckRequest): boolean {
    const { maxWaitMillis = Infinity } = request;
    if (this.millisToTurn(now, request) <= maxWaitMillis) return false;
    return maxWaitMillis === 0 || !this.approvals.expectRelease;
  }

  /** Before this time no check of a list has room: those who wait in other lists may need more than it. */
  #leastRoomAt(waiting: RequestTerms): number {
    const { exactRoomAt } = this;
    const { hits, list } = waiting;
    return list ? Math.min(exactRoomAt, this.#roomFor({ hits, list })) : exactRoomAt;
  }

  /**
   * When what stops a waiter may have ended by itself: when all limits that it lacks room in may have it, or, if it lacks none,
   * when any has more or a hold may begin.
   */
  #roomFor({ hits = 1, holdMillis, list }: RequestTerms): number {
    const { holds } = this.approvals;
    const holdAt = holdMillis !== undefined && holds?.isFull ? holds.firstLapse : Infinity;
    const limits = this.approvals.limitsOf(list);
    const full = limits.filter((limit) => limit.isFull || !limit.fitsAlone(hits));
    const isFull = full.length > 0;
    const times = (isFull ? full : limits).map((limit) => limit.roomAt(hits));
    const time = isFull ? Math.max(...times) : Math.min(holdAt, ...times);
    return unlessPaused(time, isFull, Math.max(this.pausedUntil, this.#groupPausedUntil(list)));
  }

  /** The same for those that it stops which are not of its lane or group; undefined if it stops none. */
  #roomForOthers({ hits = 1, list }: RequestTerms): number | undefined {
    const limits = this.approvals.limitsOf(list).filter(({ lists }) => !lists);
    const full = limits.filter((limit) => limit.isFull || !limit.fitsAlone(hits));
    if (full.length === 0) return undefined;
    return Math.max(this.pausedUntil, ...full.map((limit) => limit.roomAt(hits)));
  }

  /** When groups that are stopped may have room: a lapse tells which of them has it. Infinity if none is stopped. */
  get #groupsRoomAt(): number {
    const { stoppedUntil } = this.queue;
    if (stoppedUntil === undefined || this.#isClosed) return Infinity;
    return Math.min(stoppedUntil, this.approvals.holds?.firstLapse ?? Infinity);
  }

  /** Whether nobody is approved, whatever the limits of groups have left. */
  get #isClosed(): boolean {
    return this.pausedUntil > -Infinity || !this.approvals.fit({ hits: 1 });
  }

  #groupPausedUntil(list: QueueList | undefined): number {
    const { groups } = this.approvals;
    return list?.kind === 'group' && groups ? groups.pausedUntil(list.name) : -Infinity;
  }

  /** The heads that would be next, if only what they need keeps them waiting, without those of groups that are stopped. */
  get #stopped(): readonly RequestTerms[] {
    const { approvals, queue } = this;
    if (this.#isClosed) return ANYBODY;
    const heads = queue.stoppedHeads((head) => approvals.stoppedBy(head) ?? 'all');
    return heads.length > 0 || queue.stoppedUntil !== undefined ? heads : ANYBODY;
  }
}
