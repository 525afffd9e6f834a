import type { CheckRequest } from '../limiter.js';
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
    const roomAt = Math.min(...this.#stopped.map((waiting) => this.#roomFor(waiting)));
    const pacedAt = approvals.havePace
      ? Math.max(roomAt, servedAt + LEAST_BETWEEN_SETTLES)
      : roomAt;
    const changeAt = rules.limitsChangeAt(window, limits.length);
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
    return Math.max(millisUntil(this.#leastRoomAt(waiting), now), turn);
  }

  /** The same, but with a maximum of 0, for which no turn ever comes, the time until the limits may have room. */
  finiteMillisToTurn(now: number, waiting: RequestTerms, before?: number): number {
    const turn = this.millisToTurn(now, waiting, before);
    return turn < Infinity ? turn : millisUntil(this.exactRoomAt, now);
  }

  /** Returns why a check can't wait for its turn; undefined if it can. */
  refusalToWait(
    now: number,
    request: CheckRequest,
  ): 'queue_full' | 'queue_full_of_group' | 'turn_too_late' | 'no_place' | undefined {
    // With a maximum of 0 no turn ever comes.
    const places = this.approvals.own.maximum === 0 ? 0 : this.rules.maxRequestsInQueue;
    if (this.queue.size >= places) return 'queue_full';
    const { list } = request;
    const { maxRequests = Infinity } = list?.kind === 'group' ? list : {};
    if (this.queue.countIn(list) >= maxRequests) return 'queue_full_of_group';
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
    return unlessPaused(time, isFull, this.pausedUntil);
  }

  /** The heads that would be next, if only what they need keeps them waiting. */
  get #stopped(): readonly RequestTerms[] {
    const { approvals, queue, pausedUntil } = this;
    if (pausedUntil > -Infinity || !approvals.fit({ hits: 1 })) return ANYBODY;
    const heads = queue.stoppedHeads((head) => approvals.stoppedBy(head) ?? 'all');
    return heads.length > 0 ? heads : ANYBODY;
  }
}
