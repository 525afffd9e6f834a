import type { CheckRequest, PlaceInQueue } from '../limiter.js';
import type { Approvals } from './approvals.js';
import { millisUntil, roomForWaiters } from './limits/room-at.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import type { RulesInForce } from './rules-in-force.js';

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
    const { rules, pausedUntil, servedAt } = this;
    const { limits, window } = this.approvals;
    const roomAt = roomForWaiters(limits, { hits: this.#headHits, pausedUntil, servedAt });
    // The rules that come into force at the boundary may not have the limit that is full.
    const mayChange = limits.length > 1 || !rules.hasLatestAlgorithm;
    if (!mayChange || !rules.awaitBoundary(window)) return roomAt;
    return Math.min(roomAt, Math.max(window.end, pausedUntil));
  }

  /**
   * The least time until the turn of a check, if nobody left the queue and nothing was released before.
   * @param before how many wait before it, each for one hit at least; by default all
   */
  millisToTurn(now: number, hits = 1, before = this.queue.size): number {
    const laterMillis = this.rules.laterMillis(this.approvals.window);
    const turn = this.approvals.millisToTurn(now, before, hits, laterMillis);
    return Math.max(millisUntil(this.exactRoomAt, now), turn);
  }

  /** The same, but with a maximum of 0, for which no turn ever comes, the time until the limits may have room. */
  finiteMillisToTurn(now: number, hits?: number, before?: number): number {
    const turn = this.millisToTurn(now, hits, before);
    return turn < Infinity ? turn : millisUntil(this.exactRoomAt, now);
  }

  /** Returns where a request waits; undefined if it does not. */
  placeOf(now: number, requestId: string): PlaceInQueue | undefined {
    const queued = this.queue.find(requestId);
    if (!queued) return undefined;
    const position = this.queue.positionOf(requestId);
    return { position, waitMillis: this.finiteMillisToTurn(now, queued.hits, position - 1) };
  }

  /** Returns why a check can't wait for its turn; undefined if it can. */
  refusalToWait(
    now: number,
    { hits, maxWaitMillis, noPlace }: CheckRequest,
  ): 'queue_full' | 'turn_too_late' | 'no_place' | undefined {
    // With a maximum of 0 no turn ever comes.
    const places = this.approvals.own.maximum === 0 ? 0 : this.rules.maxRequestsInQueue;
    if (this.queue.size >= places) return 'queue_full';
    if (this.#isTooLate(now, hits, maxWaitMillis)) return 'turn_too_late';
    return noPlace ? 'no_place' : undefined;
  }

  /**
   * Whether a check would have to wait longer than it can. Where an approval is held now, or something was given back in
   * this window or the last, a release can be expected, and the check waits until its time is over.
   */
  #isTooLate(now: number, hits?: number, maxWaitMillis = Infinity): boolean {
    if (this.millisToTurn(now, hits) <= maxWaitMillis) return false;
    return maxWaitMillis === 0 || !this.approvals.expectRelease;
  }

  /** What the head of the queue needs, if only that keeps it waiting. */
  get #headHits(): number {
    if (this.pausedUntil > -Infinity || !this.approvals.fit({ hits: 1 })) return 1;
    return this.queue.first(1)[0]?.hits ?? 1;
  }
}
