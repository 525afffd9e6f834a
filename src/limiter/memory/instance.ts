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
import { FurtherWindow } from './further-window.js';
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

const NO_FURTHER: readonly FurtherWindow[] = [];

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
  /** Those of the further limits, in the order of the rules. */
  #further: readonly FurtherWindow[] = NO_FURTHER;
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
    this.#requests = new ApprovedIds(room);
    this.#takeFurther(now);
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
    if (this.#further.length === 0) return this.#unlessPaused(own, this.#isOwnFull);
    const full = this.#further.filter((limit) => !limit.hasRoomFor(1, this.#holds));
    const times = (full.length > 0 || this.#isOwnFull ? full : this.#further).map((limit) =>
      limit.roomAt(this.#holds),
    );
    if (full.length === 0 && !this.#isOwnFull) {
      return this.#unlessPaused(Math.min(own, ...times), false);
    }
    return this.#unlessPaused(Math.max(...(this.#isOwnFull ? [own] : []), ...times), true);
  }

  /** The same for the maximum per window: when the window ends or a hold lapses. */
  get #ownRoomAt(): number {
    const firstLapse = this.#holds?.firstLapse ?? Infinity;
    // While held approvals take all of the maximum, the window's end makes no room.
    const isAllHeld = firstLapse < Infinity && this.#held >= this.#maxRequests;
    return isAllHeld ? firstLapse : Math.min(this.#window.end, firstLapse);
  }

  get #isOwnFull(): boolean {
    return this.#approved >= this.#capacity;
  }

  #unlessPaused(roomAt: number, isFull: boolean): number {
    if (!this.#isPaused) return roomAt;
    return isFull ? Math.max(roomAt, this.#pausedUntil) : this.#pausedUntil;
  }

  isIdle(now: number): boolean {
    if (now < this.#expires || now < this.#pausedUntil || this.#queue.size > 0) return false;
    return this.#holds?.heldAt(now) === undefined;
  }

  check(now: number, requestId: string, request: CheckRequest): InstanceDecision {
    this.#roll(now);
    if (this.#takeMaxima(now)) this.#forgetOverridesAboveCeilings();
    this.#expires = this.#idleAt;
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
    if (this.#isTooMuch(hits)) return 'too_many_hits';
    if (!request.canWait) {
      if (this.#isKeyFullFor(terms)) return 'key_full';
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

  /** Takes the rules as they are now, and serves the queue. */
  settle(now: number): void {
    this.#roll(now);
    this.#takeMaxima(now);
    this.#serveQueue(now);
  }

  /** Releases an approval with all of its hits. */
  release(now: number, requestId: string): boolean {
    this.#roll(now);
    const isReleased = this.#release(now, requestId, false);
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

  /** Withdraws a waiter, or an approval that nobody has got. */
  withdraw(now: number, requestId: string): void {
    this.#roll(now);
    if (!this.#queue.delete(requestId)) this.#release(now, requestId, true);
    this.#serveQueue(now);
  }

  /** Gives back the memory of a window that has ended. Nothing else changes. */
  forgetEndedWindow(now: number): void {
    if (now >= this.#window.end) this.#requests.clear();
    for (const limit of this.#further) if (now >= limit.end) limit.clear();
  }

  /** Gives back all memory of an instance that is removed. */
  clear(): void {
    this.#requests.clear();
    this.#holds?.clear();
    for (const limit of this.#further) limit.clear();
  }

  inspect(now: number): InstanceState {
    const windowHasEnded = now >= this.#window.end;
    const held = this.#holds?.heldAt(now)?.hits ?? 0;
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
      ...this.#ofFurther((limit) => limit.state(now, this.#holds)),
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
      resetMillis: this.#unlessPaused(this.#ownRoomAt, this.#isOwnFull) - now,
      ...this.#ofFurther((limit) => limit.quota(now, this.#holds, this.#pausedUntil)),
      ...(this.#window.isOverridden ? { windowMillis: this.#window.millis } : undefined),
    };
  }

  /**
   * The least time until a check that joined now would have its turn, if nobody left the queue and nothing was released
   * before. Each that waits needs one hit at least.
   */
  millisToTurn(now: number, hits = 1): number {
    const before = this.#queue.size;
    const most = hits === 1 ? this.#capacity : this.#maxRequests;
    const room = Math.max(0, most - this.#approved);
    const needed = before + Math.min(hits, most);
    const ofFurther = this.#further.map((limit) =>
      limit.millisToTurn(now, before, hits, this.#holds),
    );
    const toRoom = Math.max(this.roomAt - now, ...ofFurther);
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
    const windows = [this.#window, ...this.#further];
    const expectsRelease =
      this.#hasHolds || windows.some(({ start, millis }) => this.#releasedAt >= start - millis);
    return maxWaitMillis === 0 || !expectsRelease;
  }

  /** @returns false if there is no memory for it, so that nothing has changed */
  #approve(now: number, requestId: string, terms: Terms): boolean {
    if (this.#further.length === 0) return this.#approveOwn(now, requestId, terms);
    const { hits = 1, holdMillis } = terms;
    for (const [i, limit] of this.#further.entries()) {
      if (limit.add(requestId, hits, holdMillis !== undefined)) continue;
      for (const added of this.#further.slice(0, i)) added.release(requestId, true);
      return false;
    }
    if (this.#approveOwn(now, requestId, terms)) return true;
    for (const limit of this.#further) limit.release(requestId, true);
    return false;
  }

  #approveOwn(now: number, requestId: string, { hits = 1, holdMillis }: Terms): boolean {
    if (holdMillis === undefined) return this.#requests.add(requestId, hits);
    this.#holds ??= new Holds(this.bounds.maxHoldsPerKey, this.room);
    return this.#holds.add(now, requestId, hits, holdMillis);
  }

  /** @param isUnused nobody has got the approval */
  #release(now: number, requestId: string, isUnused: boolean): boolean {
    return this.#change(now, () => {
      let isReleased =
        (this.#holds?.release(requestId) ?? false) || this.#requests.release(requestId);
      for (const limit of this.#further) {
        isReleased = limit.release(requestId, isUnused) || isReleased;
      }
      return isReleased;
    });
  }

  #amend(
    now: number,
    requestId: string,
    { hits, holdMillis }: Amendment,
  ): Amended | 'unknown' | 'store_full' {
    const lapsesIn = this.#holds?.renew(now, requestId, { hits, millis: holdMillis });
    const isHeld = lapsesIn !== undefined;
    if (isHeld && hits === undefined) return { holdMillis: lapsesIn };
    if (hits === undefined || (holdMillis !== undefined && !isHeld)) return 'unknown';
    const amended = [
      isHeld ? 'amended' : this.#requests.amend(requestId, hits),
      ...this.#further.map((limit) => limit.amend(requestId, hits)),
    ];
    if (amended.includes('store_full')) return 'store_full';
    if (!amended.includes('amended')) return 'unknown';
    return isHeld ? { holdMillis: lapsesIn } : {};
  }

  /** Changes the approvals, and notes when they take less than before. */
  #change<Result>(now: number, change: () => Result): Result {
    const before = this.#takenOfAll;
    const result = change();
    if (this.#takenOfAll < before) this.#releasedAt = now;
    return result;
  }

  /** The hits of all approvals that count. */
  get #approved(): number {
    return this.#requests.hits + this.#held;
  }

  /** What the approvals take of all limits together. */
  get #takenOfAll(): number {
    return this.#further.reduce((sum, limit) => sum + limit.taken(this.#holds), this.#approved);
  }

  get #held(): number {
    return this.#holds?.hits ?? 0;
  }

  get #hasHolds(): boolean {
    return this.#holds !== undefined && this.#holds.firstLapse < Infinity;
  }

  #hasRoomFor(terms: Terms): boolean {
    return !this.#isFull(terms) && this.#fits(terms);
  }

  /** Whether its hits fit into all limits. */
  #fits({ hits = 1 }: Terms): boolean {
    return (
      this.#approved + hits <= this.#maxRequests &&
      this.#further.every((limit) => limit.hasRoomFor(hits, this.#holds))
    );
  }

  /**
   * Whether a waiter gets a window for itself where it needs more than a limit's maximum, which was lowered since, and
   * fits into all other limits.
   */
  #fitsAlone({ hits = 1, holdMillis }: Terms): boolean {
    const holds = this.#holds;
    return (
      !this.#isFull({ holdMillis }) &&
      (this.#approved + hits <= this.#maxRequests ||
        (this.#approved === 0 && this.#maxRequests > 0)) &&
      this.#further.every((limit) => limit.hasRoomFor(hits, holds) || limit.isUnused(holds))
    );
  }

  /** Whether a check takes more than a limit has, so that no window can approve it. */
  #isTooMuch(hits: number): boolean {
    if (hits === 1) return false;
    return hits > this.#maxRequests || this.#further.some((limit) => limit.isBelow(hits));
  }

  /** Whether a check would fit if more approvals were kept. */
  #isKeyFullFor(terms: Terms): boolean {
    const isFull = this.#isFull(terms) || this.#further.some((limit) => limit.isFull);
    const { hits = 1 } = terms;
    return (
      isFull &&
      this.#approved + hits <= this.#maxRequests &&
      this.#further.every((limit) => limit.isFull || limit.hasRoomFor(hits, this.#holds))
    );
  }

  /** Whether no more approvals are kept: of those that are held, or of those of the window. */
  #isFull({ holdMillis }: Pick<Terms, 'holdMillis'>): boolean {
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

  /**
   * Other limits come into force with the next window, or at once if its length stays.
   * @returns whether they are in force
   */
  #takeMaxima(now: number): boolean {
    const { limits } = this.policy.current;
    if (limits.windowMillis !== this.#window.millis && !this.#window.isOverridden) return false;
    this.#takeLimits(now, limits);
    return true;
  }

  #takeLimits(now: number, limits: KeyLimits): void {
    const { further } = this.#limits;
    this.#limits = limits;
    if (limits.further !== further) this.#takeFurther(now);
  }

  /** A limit that the rules had before keeps what was approved in its window. */
  #takeFurther(now: number): void {
    const before = this.#further;
    const { further = [] } = this.#limits;
    this.#further = further.map((limit) => {
      const kept = before.find((one) => one.counts(limit));
      kept?.change(now, limit);
      return kept ?? new FurtherWindow(now, limit, this.bounds.maxIdsPerKey, this.room);
    });
    for (const limit of before) if (!this.#further.includes(limit)) limit.clear();
  }

  /** When the key is removed if nobody checks it again: not before the last of its windows ends. */
  get #idleAt(): number {
    const { idleAt } = this.#window;
    if (this.#further.length === 0) return idleAt;
    return Math.max(idleAt, ...this.#further.map(({ end }) => end));
  }

  /** For each further limit, if there are any. */
  #ofFurther<Of>(of: (limit: FurtherWindow) => Of): { readonly further?: readonly Of[] } {
    return this.#further.length === 0 ? {} : { further: this.#further.map(of) };
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
    for (const limit of this.#further) limit.roll(now);
    if (now < this.#window.end) return;
    this.#takeLimits(now, this.policy.current.limits);
    this.#window.rollTo(now, this.#limits.windowMillis);
    this.#requests.clear();
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
      const fits = this.#hasRoomFor(terms) || this.#fitsAlone(terms);
      // Without memory for its id the head keeps waiting, as in a full window.
      if (!fits || !this.#approve(now, requestId, terms)) break;
      this.#queue.delete(requestId);
      granted.push(requestId);
    }
    if (granted.length > 0) this.onGrant(granted);
  }
}
