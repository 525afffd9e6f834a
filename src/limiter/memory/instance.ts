import type {
  Amendment,
  CheckRequest,
  InstanceDetail,
  InstanceState,
  KeyLimits,
  Quota,
  WithLimits,
} from '../limiter.js';
import { type AmendOutcome, Approvals, type InstanceBounds, type Terms } from './approvals.js';
import type { MemoryRoom } from './memory-room.js';
import { moreRoomAt, unlessPaused } from './room-at.js';
import { Window } from './window.js';

export type InstanceDecision =
  | 'approved'
  | 'denied'
  | 'queue_full'
  | 'too_many_hits'
  | 'paused'
  | 'turn_too_late'
  | 'no_place'
  | 'key_full'
  | 'store_full'
  | 'waiting';

/** More is no estimate that was too low, and would close the key for everybody. */
const MOST_TIMES_MAXIMUM = 10;

interface Queued extends Terms {
  readonly arrival: number;
}

/**
 * The state of one key, and every rule of the limiter, without clock, timers or promises. The scripts in
 * `lua/` have the same rules, operation by operation.
 */
export class Instance {
  readonly #window: Window;
  readonly #approvals: Approvals;
  /** The waiting requests by their ids, in the order of arrival. */
  readonly #queue = new Map<string, Queued>();
  #denied = 0;
  #expires: number;
  /** The limits in force: the length of the window and the maxima are one unit, and change together. */
  #limits: KeyLimits;
  /**
   * The maxima that requests have set. They override the limits, and stay until the key is removed or the limits'
   * ceilings no longer allow them.
   */
  #overriddenMax: number | undefined;
  #overriddenQueueMax: number | undefined;
  /** When the pause ends; -Infinity if there is none. */
  #pausedUntil = -Infinity;

  constructor(
    readonly key: string,
    now: number,
    private readonly policy: { readonly current: WithLimits },
    bounds: InstanceBounds,
    room: MemoryRoom,
    /** Gets the ids that were approved from the queue, in order. */
    private readonly onGrant: (requestIds: readonly string[]) => void,
  ) {
    this.#limits = policy.current.limits;
    this.#window = new Window(now, this.#limits.windowMillis);
    this.#approvals = new Approvals(bounds, room);
    if (this.#limits.further) this.#approvals.takeFurther(now, this.#limits.further);
    this.#expires = this.#idleAt;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /**
   * When waiters may have room next: when all limits that are full have room, or, if none is, when any of them has more.
   */
  get roomAt(): number {
    const own = this.#ownRoomAt;
    const { further, holds } = this.#approvals;
    if (further.length === 0) return unlessPaused(own, this.#isOwnFull, this.#pausedUntil);
    const full = further.filter((window) => !window.fits(1, holds));
    const isFull = full.length > 0 || this.#isOwnFull;
    const times = (isFull ? full : further).map((window) => window.roomAt(holds));
    if (!isFull || this.#isOwnFull) times.push(own);
    const time = isFull ? Math.max(...times) : Math.min(...times);
    const roomAt = unlessPaused(time, isFull, this.#pausedUntil);
    // The rules that come into force at the boundary may have no such limit.
    return this.#awaitsBoundary ? Math.min(roomAt, this.#window.end) : roomAt;
  }

  /** The same for the maximum per window. */
  get #ownRoomAt(): number {
    const { firstLapse, held } = this.#approvals;
    const { end: windowEnd } = this.#window;
    return moreRoomAt({ windowEnd, firstLapse, held, maximum: this.#maxRequests });
  }

  get #isOwnFull(): boolean {
    return this.#approvals.hits >= this.#approvals.capacity(this.#maxRequests);
  }

  isIdle(now: number): boolean {
    if (now < this.#expires || now < this.#pausedUntil || this.#queue.size > 0) return false;
    return this.#approvals.holds?.heldAt(now) === undefined;
  }

  check(now: number, requestId: string, request: CheckRequest): InstanceDecision {
    this.#roll(now);
    if (this.#takeMaxima(now)) this.#forgetOverridesAboveCeilings();
    if (request.windowMillis !== undefined) {
      this.#window.override(request.windowMillis);
      // It may be the length that the window has already.
      this.#takeMaxima(now);
    }
    this.#expires = this.#idleAt;
    this.#overriddenMax = request.maxRequests ?? this.#overriddenMax;
    this.#overriddenQueueMax = request.maxRequestsInQueue ?? this.#overriddenQueueMax;
    this.#serveQueue(now);
    const { hits = 1, holdMillis } = request;
    const terms = { hits, holdMillis };
    const approvals = this.#approvals;
    const max = this.#maxRequests;
    // A head that needs more than is free is not overtaken.
    const mayBeNext = this.#queue.size === 0 && !this.#isPaused && !approvals.isFull(terms);
    if (mayBeNext && approvals.fit(terms, max)) {
      return approvals.add(now, requestId, terms) ? 'approved' : 'store_full';
    }
    if (hits > 1 && (hits > max || approvals.exceedFurther(hits))) return 'too_many_hits';
    if (!request.canWait) {
      if (approvals.isFull(terms) && approvals.fit(terms, max)) return 'key_full';
      this.#denied += 1;
      return this.#isPaused ? 'paused' : 'denied';
    }
    // With a maximum of 0 no turn ever comes.
    const places = max === 0 ? 0 : this.#maxRequestsInQueue;
    if (this.#queue.size >= places) return 'queue_full';
    if (this.#isTooLate(now, request)) return 'turn_too_late';
    if (request.noPlace) return 'no_place';
    this.#queue.set(requestId, { arrival: now, ...terms });
    return 'waiting';
  }

  /** Takes the rules as they are now, and serves the queue. */
  settle(now: number): void {
    this.#roll(now);
    this.#takeMaxima(now);
    this.#serveQueue(now);
  }

  /** Releases an approval with all of its hits. */
  release(now: number, requestId: string): boolean {
    this.#roll(now);
    const isReleased = this.#approvals.release(now, requestId, false);
    this.#serveQueue(now);
    return isReleased;
  }

  /** @param millis from now on; 0 ends the pause */
  pause(now: number, millis: number): void {
    this.#roll(now);
    this.#pausedUntil = millis > 0 ? now + millis : -Infinity;
    this.#serveQueue(now);
  }

  /** Changes an approval that still counts, and renews its hold. */
  amend(now: number, requestId: string, amendment: Amendment): AmendOutcome {
    this.#roll(now);
    const { maxHits = MOST_TIMES_MAXIMUM * this.#maxRequests } = amendment;
    const amended = this.#approvals.amend(now, requestId, { ...amendment, maxHits });
    this.#serveQueue(now);
    return amended;
  }

  /** Withdraws a waiter, or an approval that nobody has got. */
  withdraw(now: number, requestId: string): void {
    this.#roll(now);
    if (!this.#queue.delete(requestId)) this.#approvals.release(now, requestId, true);
    this.#serveQueue(now);
  }

  /** Gives back the memory of a window that has ended. Nothing else changes. */
  forgetEndedWindow(now: number): void {
    if (now >= this.#window.end) this.#approvals.endWindow();
    this.#approvals.forgetEnded(now);
  }

  /** Gives back all memory of an instance that is removed. */
  clear(): void {
    this.#approvals.clear();
  }

  inspect(now: number): InstanceState {
    const windowHasEnded = now >= this.#window.end;
    const { holds, hitsOfWindow, further } = this.#approvals;
    const held = holds?.heldAt(now)?.hits ?? 0;
    return {
      key: this.key,
      limits: {
        windowMillis: windowHasEnded
          ? this.#window.nextMillis(this.#window.millis)
          : this.#window.millis,
        maxRequests: this.#maxRequests,
        maxRequestsInQueue: this.#maxRequestsInQueue,
      },
      approved: held + (windowHasEnded ? 0 : hitsOfWindow),
      held,
      denied: windowHasEnded ? 0 : this.#denied,
      waiting: this.#queue.size,
      pausedMillis: Math.max(0, this.#pausedUntil - now),
      ...(further.length > 0 && { further: further.map((window) => window.state(now, holds)) }),
    };
  }

  examine(now: number, mostQueued: number): InstanceDetail {
    const queue = [...this.#queue.values()].slice(0, mostQueued);
    const places = this.#queue.size;
    return {
      ...this.inspect(now),
      millisToWindowEnd: this.#window.millisLeft(now),
      overridden: {
        maxRequests: this.#overriddenMax !== undefined,
        maxRequestsInQueue: this.#overriddenQueueMax !== undefined,
        windowMillis: this.#window.hasOverride,
      },
      isHeld: false,
      queue: queue.map(({ arrival }) => ({ replica: undefined, waitedMillis: now - arrival })),
      replicas: places === 0 ? [] : [{ replica: undefined, places, leaseMillis: undefined }],
      names: [],
    };
  }

  /** As of the last operation. */
  quota(now: number): Quota {
    const { hits, further, holds } = this.#approvals;
    const quota = {
      maxRequests: this.#maxRequests,
      remaining: this.#isPaused ? 0 : Math.max(0, this.#maxRequests - hits),
      resetMillis: unlessPaused(this.#ownRoomAt, this.#isOwnFull, this.#pausedUntil) - now,
      ...(this.#window.isOverridden ? { windowMillis: this.#window.millis } : undefined),
    };
    if (further.length === 0) return quota;
    const ofFurther = further.map((window) => window.quota(now, holds, this.#pausedUntil));
    return { ...quota, further: ofFurther };
  }

  /**
   * The least time until a check that joined now would have its turn, if nobody left the queue and nothing was released
   * before. Each that waits needs one hit at least.
   */
  millisToTurn(now: number, hits = 1): number {
    const before = this.#queue.size;
    const { further, holds } = this.#approvals;
    const most = hits === 1 ? this.#approvals.capacity(this.#maxRequests) : this.#maxRequests;
    const room = Math.max(0, most - this.#approvals.hits);
    const missing = before + Math.min(hits, most) - room;
    const turns = further.map((window) => window.millisToTurn(now, before, hits, holds));
    const toRoom = Math.max(this.roomAt - now, ...turns);
    if (missing <= 0) return toRoom;
    const laterMillis = this.#window.nextMillis(this.policy.current.limits.windowMillis);
    const toWindow = this.#window.millisToMissing(now, missing, most, laterMillis);
    return Math.max(toRoom, toWindow);
  }

  /**
   * Whether a check would have to wait longer than it can. Where an approval is held now, or something was given back in
   * this window or the last, a release can be expected, and the check waits until its time is over.
   */
  #isTooLate(now: number, { hits, maxWaitMillis = Infinity }: CheckRequest): boolean {
    if (this.millisToTurn(now, hits) <= maxWaitMillis) return false;
    return maxWaitMillis === 0 || !this.#approvals.expectRelease(this.#window);
  }

  get #maxRequests(): number {
    return this.#overriddenMax ?? this.#limits.maxRequests;
  }

  get #maxRequestsInQueue(): number {
    return this.#overriddenQueueMax ?? this.#limits.maxRequestsInQueue;
  }

  get #isPaused(): boolean {
    return this.#pausedUntil > -Infinity;
  }

  /**
   * Other limits come into force with the next window, or at once if its length stays.
   * @returns whether they are in force
   */
  #takeMaxima(now: number): boolean {
    if (this.#awaitsBoundary) return false;
    this.#takeLimits(now, this.policy.current.limits);
    return true;
  }

  /** Whether the rules have another window, so that they come into force with the next one. */
  get #awaitsBoundary(): boolean {
    const { windowMillis } = this.policy.current.limits;
    return windowMillis !== this.#window.millis && !this.#window.isOverridden;
  }

  #takeLimits(now: number, limits: KeyLimits): void {
    const { further } = this.#limits;
    this.#limits = limits;
    if (limits.further === further) return;
    this.#approvals.takeFurther(now, limits.further);
    // A longer window may end after the key would be removed.
    const used = this.#approvals.further.filter(
      (window) => !window.isUnused(this.#approvals.holds),
    );
    this.#expires = Math.max(this.#expires, ...used.map(({ end }) => end));
  }

  /** When the key is removed if nobody checks it again: not before the last of its windows ends. */
  get #idleAt(): number {
    const { further } = this.#approvals;
    if (further.length === 0) return this.#window.idleAt;
    return Math.max(this.#window.idleAt, ...further.map(({ end }) => end));
  }

  #forgetOverridesAboveCeilings(): void {
    const { ceilings } = this.#limits;
    if (!ceilings) return;
    if ((this.#overriddenMax ?? -1) > ceilings.maxRequests) this.#overriddenMax = undefined;
    if ((this.#overriddenQueueMax ?? -1) > ceilings.maxRequestsInQueue) {
      this.#overriddenQueueMax = undefined;
    }
    this.#window.dropOverrideAbove(ceilings.windowMillis);
  }

  /** Ends the holds that have lapsed, and the windows that are over. */
  #roll(now: number): void {
    this.#approvals.roll(now);
    if (now >= this.#pausedUntil) this.#pausedUntil = -Infinity;
    if (now < this.#window.end) return;
    this.#takeLimits(now, this.policy.current.limits);
    this.#window.rollTo(now, this.#limits.windowMillis);
    this.#approvals.endWindow();
    this.#denied = 0;
    // A window in which somebody waits counts as one with a check.
    if (this.#queue.size > 0) this.#expires = this.#idleAt;
  }

  /**
   * Every operation that may have made room calls this. So while somebody waits, the window is full, or the head needs
   * more than is free.
   */
  #serveQueue(now: number): void {
    if (this.#queue.size === 0 || this.#isPaused) return;
    const granted: string[] = [];
    for (const [requestId, terms] of this.#queue) {
      const fits =
        !this.#approvals.isFull(terms) && this.#approvals.fitAlone(terms, this.#maxRequests);
      // Without memory for its id the head keeps waiting, as in a full window.
      if (!fits || !this.#approvals.add(now, requestId, terms)) break;
      this.#queue.delete(requestId);
      granted.push(requestId);
    }
    if (granted.length === 0) return;
    // The limits that they count in may be newer than the last check.
    this.#expires = Math.max(this.#expires, this.#idleAt);
    this.onGrant(granted);
  }
}
