import type {
  Amended,
  Amendment,
  CheckRequest,
  InstanceDetail,
  InstanceState,
  KeyLimits,
  Quota,
  WithLimits,
} from '../limiter.js';
import { ApprovedIds } from './approved-ids.js';
import { Holds } from './holds.js';
import type { MemoryRoom } from './memory-room.js';
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

/** What an approval takes. */
type Terms = Pick<CheckRequest, 'hits' | 'holdMillis'>;

interface Queued extends Terms {
  readonly arrival: number;
}

/** How much a limiter keeps of each key. */
export interface InstanceBounds {
  /** The most ids of approvals that are kept for a window. */
  readonly maxIdsPerKey: number;
  /** The most approvals that are held. */
  readonly maxHoldsPerKey: number;
}

/**
 * The state of one key, and every rule of the limiter, without clock, timers or promises. The scripts in
 * `lua/` have the same rules, operation by operation.
 */
export class Instance {
  readonly #window: Window;
  /** The approvals of the window. */
  readonly #requests: ApprovedIds;
  /** The approvals that are held; undefined until there is one, since most keys have none. */
  #holds: Holds | undefined;
  /** The waiting requests by their ids, in the order of arrival. */
  readonly #queue = new Map<string, Queued>();
  #denied = 0;
  /** When an approval was last released, or got fewer hits. */
  #releasedAt = -Infinity;
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
    private readonly bounds: InstanceBounds,
    /** Holds the ids. */
    private readonly room: MemoryRoom,
    /** Gets the ids that were approved from the queue, in order. */
    private readonly onGrant: (requestIds: readonly string[]) => void,
  ) {
    this.#limits = policy.current.limits;
    this.#window = new Window(now, this.#limits.windowMillis);
    this.#expires = this.#window.idleAt;
    this.#requests = new ApprovedIds(room);
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** When waiters may have room next: when the window ends or a hold lapses. */
  get roomAt(): number {
    const firstLapse = this.#holds?.firstLapse ?? Infinity;
    // While held approvals take all of the maximum, the window's end makes no room.
    const isAllHeld = firstLapse < Infinity && this.#held >= this.#maxRequests;
    const changesAt = isAllHeld ? firstLapse : Math.min(this.#window.end, firstLapse);
    if (!this.#isPaused) return changesAt;
    const hasRoom = this.#approved < this.#capacity;
    return hasRoom ? this.#pausedUntil : Math.max(changesAt, this.#pausedUntil);
  }

  isIdle(now: number): boolean {
    if (now < this.#expires || now < this.#pausedUntil || this.#queue.size > 0) return false;
    return this.#holds?.hitsAt(now) === undefined;
  }

  check(now: number, requestId: string, request: CheckRequest): InstanceDecision {
    this.#roll(now);
    this.#expires = this.#window.idleAt;
    this.#takeMaxima();
    if (request.windowMillis !== undefined) this.#window.override(request.windowMillis);
    this.#overriddenMax = request.maxRequests ?? this.#overriddenMax;
    this.#overriddenQueueMax = request.maxRequestsInQueue ?? this.#overriddenQueueMax;
    this.#serveQueue(now);
    const { hits = 1, holdMillis } = request;
    const terms = { hits, holdMillis };
    // A head that needs more than is free is not overtaken.
    if (this.#queue.size === 0 && !this.#isPaused && this.#hasRoomFor(terms)) {
      return this.#approve(now, requestId, terms) ? 'approved' : 'store_full';
    }
    if (hits > 1 && hits > this.#maxRequests) return 'too_many_hits';
    if (!request.canWait) {
      if (this.#isFull(terms) && this.#approved + hits <= this.#maxRequests) return 'key_full';
      this.#denied += 1;
      return this.#isPaused ? 'paused' : 'denied';
    }
    // With a maximum of 0 no turn ever comes.
    const places = this.#maxRequests === 0 ? 0 : this.#maxRequestsInQueue;
    if (this.#queue.size >= places) return 'queue_full';
    if (this.#isTooLate(now, request)) return 'turn_too_late';
    if (request.noPlace) return 'no_place';
    this.#queue.set(requestId, { arrival: now, ...terms });
    return 'waiting';
  }

  settle(now: number): void {
    this.#roll(now);
    this.#serveQueue(now);
  }

  /** Releases an approval with all of its hits. */
  release(now: number, requestId: string): boolean {
    this.#roll(now);
    const isReleased = this.#release(now, requestId);
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
  amend(now: number, requestId: string, amendment: Amendment): Amended | 'unknown' | 'store_full' {
    this.#roll(now);
    const amended = this.#change(now, () => this.#amend(now, requestId, amendment));
    this.#serveQueue(now);
    return amended;
  }

  withdraw(now: number, requestId: string): void {
    this.#roll(now);
    if (!this.#queue.delete(requestId)) this.#release(now, requestId);
    this.#serveQueue(now);
  }

  /** Gives back the memory of a window that has ended. Nothing else changes. */
  forgetEndedWindow(now: number): void {
    if (now >= this.#window.end) this.#requests.clear();
  }

  /** Gives back all memory of an instance that is removed. */
  clear(): void {
    this.#requests.clear();
    this.#holds?.clear();
  }

  inspect(now: number): InstanceState {
    const windowHasEnded = now >= this.#window.end;
    const held = this.#holds?.hitsAt(now) ?? 0;
    return {
      key: this.key,
      limits: {
        windowMillis: windowHasEnded
          ? this.#window.nextMillis(this.#window.millis)
          : this.#window.millis,
        maxRequests: this.#maxRequests,
        maxRequestsInQueue: this.#maxRequestsInQueue,
      },
      approved: held + (windowHasEnded ? 0 : this.#requests.hits),
      held,
      denied: windowHasEnded ? 0 : this.#denied,
      waiting: this.#queue.size,
      pausedMillis: Math.max(0, this.#pausedUntil - now),
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
    return {
      maxRequests: this.#maxRequests,
      remaining: this.#isPaused ? 0 : Math.max(0, this.#maxRequests - this.#approved),
      resetMillis: this.roomAt - now,
      ...(this.#window.isOverridden ? { windowMillis: this.#window.millis } : undefined),
    };
  }

  /**
   * The least time until a check that joined now would have its turn, if nobody left the queue and nothing was released
   * before. Each that waits needs one hit at least.
   */
  millisToTurn(now: number, hits = 1): number {
    const most = hits === 1 ? this.#capacity : this.#maxRequests;
    const room = Math.max(0, most - this.#approved);
    const needed = this.#queue.size + Math.min(hits, most);
    const toRoom = this.roomAt - now;
    if (needed <= room) return toRoom;
    const windowsBefore = Math.ceil((needed - room) / most) - 1;
    const windowMillis = this.#window.nextMillis(this.policy.current.limits.windowMillis);
    const toWindow = this.#window.end - now + windowsBefore * windowMillis;
    return Math.max(toRoom, toWindow);
  }

  /**
   * Whether a check would have to wait longer than it can. Where an approval is held now, or something was given back in
   * this window or the last, a release can be expected, and the check waits until its time is over.
   */
  #isTooLate(now: number, { hits, maxWaitMillis = Infinity }: CheckRequest): boolean {
    if (this.millisToTurn(now, hits) <= maxWaitMillis) return false;
    const expectsRelease =
      this.#hasHolds || this.#releasedAt >= this.#window.start - this.#window.millis;
    return maxWaitMillis === 0 || !expectsRelease;
  }

  /** @returns false if there is no memory for it */
  #approve(now: number, requestId: string, { hits = 1, holdMillis }: Terms): boolean {
    if (holdMillis === undefined) return this.#requests.add(requestId, hits);
    this.#holds ??= new Holds(this.bounds.maxHoldsPerKey, this.room);
    return this.#holds.add(now, requestId, hits, holdMillis);
  }

  #release(now: number, requestId: string): boolean {
    return this.#change(
      now,
      () => (this.#holds?.release(requestId) ?? false) || this.#requests.release(requestId),
    );
  }

  #amend(
    now: number,
    requestId: string,
    { hits, holdMillis }: Amendment,
  ): Amended | 'unknown' | 'store_full' {
    const lapsesIn = this.#holds?.renew(now, requestId, { hits, millis: holdMillis });
    if (lapsesIn !== undefined) return { holdMillis: lapsesIn };
    if (hits === undefined || holdMillis !== undefined) return 'unknown';
    const amended = this.#requests.amend(requestId, hits);
    return amended === 'amended' ? {} : amended;
  }

  /** Changes the approvals, and notes when they take less than before. */
  #change<Result>(now: number, change: () => Result): Result {
    const before = this.#approved;
    const result = change();
    if (this.#approved < before) this.#releasedAt = now;
    return result;
  }

  /** The hits of all approvals that count. */
  get #approved(): number {
    return this.#requests.hits + this.#held;
  }

  get #held(): number {
    return this.#holds?.hits ?? 0;
  }

  get #hasHolds(): boolean {
    return this.#holds !== undefined && this.#holds.firstLapse < Infinity;
  }

  #hasRoomFor(terms: Terms): boolean {
    return !this.#isFull(terms) && this.#approved + (terms.hits ?? 1) <= this.#maxRequests;
  }

  /** Whether no more approvals are kept: of those that are held, or of those of the window. */
  #isFull({ holdMillis }: Terms): boolean {
    if (holdMillis !== undefined) return this.#holds?.isFull ?? false;
    return this.#requests.size >= this.bounds.maxIdsPerKey;
  }

  /** How many approvals of one hit a window may have. */
  get #capacity(): number {
    return this.#hasHolds
      ? this.#maxRequests
      : Math.min(this.#maxRequests, this.bounds.maxIdsPerKey);
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

  /** Other limits come into force with the next window, or at once if its length stays. */
  #takeMaxima(): void {
    const { limits } = this.policy.current;
    if (limits.windowMillis !== this.#window.millis && !this.#window.isOverridden) return;
    this.#limits = limits;
    this.#forgetOverridesAboveCeilings();
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

  /** Ends the holds that have lapsed, and the window if it is over. */
  #roll(now: number): void {
    if (this.#holds) {
      const holds = this.#holds;
      this.#change(now, () => {
        holds.endLapsed(now);
      });
    }
    if (now >= this.#pausedUntil) this.#pausedUntil = -Infinity;
    if (now < this.#window.end) return;
    this.#limits = this.policy.current.limits;
    this.#window.rollTo(now, this.#limits.windowMillis);
    this.#requests.clear();
    this.#denied = 0;
    // A window in which somebody waits counts as one with a check.
    if (this.#queue.size > 0) this.#expires = this.#window.idleAt;
  }

  /**
   * Every operation that may have made room calls this. So while somebody waits, the window is full, or the head needs
   * more than is free.
   */
  #serveQueue(now: number): void {
    if (this.#queue.size === 0 || this.#isPaused) return;
    const granted: string[] = [];
    for (const [requestId, terms] of this.#queue) {
      // A waiter that needs more than the maximum, which was lowered since, gets a window for itself.
      const fits =
        this.#hasRoomFor(terms) ||
        (this.#approved === 0 && this.#hasRoomFor({ ...terms, hits: 1 }));
      // Without memory for its id the head keeps waiting, as in a full window.
      if (!fits || !this.#approve(now, requestId, terms)) break;
      this.#queue.delete(requestId);
      granted.push(requestId);
    }
    if (granted.length > 0) this.onGrant(granted);
  }
}
