import type { FurtherLimit } from '../further-limits.js';
import type { Amended, Amendment, CheckRequest, RejectedAmendment } from '../limiter.js';
import { ApprovedIds } from './approved-ids.js';
import { FurtherWindow } from './further-window.js';
import { Holds } from './holds.js';
import type { MemoryRoom } from './memory-room.js';

/** What an approval takes. */
export type Terms = Pick<CheckRequest, 'hits' | 'holdMillis'>;

/** How much a limiter keeps of each key. */
export interface InstanceBounds {
  /** The most ids of approvals that are kept for a window. */
  readonly maxIdsPerKey: number;
  /** The most approvals that are held. */
  readonly maxHoldsPerKey: number;
}

/** What became of an amendment. */
export type AmendOutcome = Amended | RejectedAmendment | 'unknown' | 'store_full';

const NO_FURTHER: readonly FurtherWindow[] = [];

/**
 * The approvals of a key that count: those of its window, those that are held, and those in the windows of its further
 * limits. `lua/lib/approvals.lua` has the same rules.
 */
export class Approvals {
  /** Of the window. */
  readonly #ids: ApprovedIds;
  /** Undefined until there is a hold, since most keys have none. */
  #holds: Holds | undefined;
  /** Of the further limits, in the order of the rules. */
  #further = NO_FURTHER;
  /** When an approval was last released or got fewer hits, or a hold lapsed. */
  #releasedAt = -Infinity;

  constructor(
    private readonly bounds: InstanceBounds,
    /** Holds the ids. */
    private readonly room: MemoryRoom,
  ) {
    this.#ids = new ApprovedIds(room);
  }

  get holds(): Holds | undefined {
    return this.#holds;
  }

  /** The windows of the further limits. */
  get further(): readonly FurtherWindow[] {
    return this.#further;
  }

  /** The hits of all approvals. */
  get hits(): number {
    return this.#ids.hits + this.held;
  }

  /** The hits of those that are not held. */
  get hitsOfWindow(): number {
    return this.#ids.hits;
  }

  /** The hits of those that are held. */
  get held(): number {
    return this.#holds?.hits ?? 0;
  }

  get hasHolds(): boolean {
    return this.#holds !== undefined && this.#holds.firstLapse < Infinity;
  }

  /** When the first hold lapses; Infinity if there is none. */
  get firstLapse(): number {
    return this.#holds?.firstLapse ?? Infinity;
  }

  /**
   * How many hits a window with this maximum may have: no more than ids are kept. Where approvals have several hits or are
   * held, the ids are counted apart.
   */
  capacity(max: number): number {
    const countsIdsApart = this.hasHolds || this.#ids.hasHits;
    return countsIdsApart ? max : Math.min(max, this.bounds.maxIdsPerKey);
  }

  /** Whether no more of them are kept: of those that are held, or of those of a window. */
  isFull({ holdMillis }: Terms): boolean {
    const isHeld = holdMillis !== undefined;
    const isFull = isHeld
      ? (this.#holds?.isFull ?? false)
      : this.#ids.size >= this.bounds.maxIdsPerKey;
    return isFull || this.#further.some((window) => window.isFull(isHeld));
  }

  /** Whether one more fits into all limits. */
  fit({ hits = 1 }: Terms, max: number): boolean {
    return (
      this.hits + hits <= max && this.#further.every((window) => window.fits(hits, this.#holds))
    );
  }

  /** The same where one that needs more than a maximum, which was lowered since, gets a window for itself. */
  fitAlone({ hits = 1 }: Terms, max: number): boolean {
    const holds = this.#holds;
    return (
      (this.hits + hits <= max || (this.hits === 0 && max > 0)) &&
      this.#further.every((window) => window.fits(hits, holds) || window.isUnused(holds))
    );
  }

  /** Whether an approval with so many hits takes more than a further limit has. */
  exceedFurther(hits: number): boolean {
    return this.#further.some((window) => window.isBelow(hits));
  }

  /** @returns false if there is no memory for it, so that nothing has changed */
  add(now: number, id: string, terms: Terms): boolean {
    if (this.#further.length === 0) return this.#addOwn(now, id, terms);
    const { hits = 1, holdMillis } = terms;
    const added = this.#further.filter((window) => window.add(id, hits, holdMillis !== undefined));
    const isAdded = added.length === this.#further.length && this.#addOwn(now, id, terms);
    if (!isAdded) for (const window of added) window.release(id, true);
    return isAdded;
  }

  #addOwn(now: number, id: string, { hits = 1, holdMillis }: Terms): boolean {
    if (holdMillis === undefined) return this.#ids.add(id, hits);
    this.#holds ??= new Holds(this.bounds.maxHoldsPerKey, this.room);
    return this.#holds.add(now, id, hits, holdMillis);
  }

  /**
   * Releases an approval with all of its hits.
   * @param isUnused nobody has got it, so that it counts in no limit
   * @returns whether it counted
   */
  release(now: number, id: string, isUnused: boolean): boolean {
    return this.#change(now, () => {
      const isReleased = (this.#holds?.release(id) ?? false) || this.#ids.release(id);
      const released = this.#further.filter((window) => window.release(id, isUnused));
      return isReleased || released.length > 0;
    });
  }

  amend(now: number, id: string, amendment: Amendment): AmendOutcome {
    return this.#change(now, () => this.#amend(now, id, amendment));
  }

  #amend(
    now: number,
    id: string,
    { hits, holdMillis, maxHits = Infinity, maxHoldMillis }: Amendment,
  ): AmendOutcome {
    // First, since a change is made as a whole or not at all.
    if (hits !== undefined && hits > maxHits) {
      const before = this.#hitsOf(id);
      if (before === undefined) return 'unknown';
      if (hits > before) return { rejected: 'hits', maxHits: Math.max(maxHits, before) };
    }
    if (hits !== undefined && !this.#makeRoom(id, hits)) return 'store_full';
    const changes = { hits, millis: holdMillis, maxMillis: maxHoldMillis };
    const lapsesIn = this.#holds?.renew(now, id, changes);
    if (lapsesIn === 'too_long') return { rejected: 'hold' };
    const isHeld = lapsesIn !== undefined;
    if (isHeld && hits === undefined) return { holdMillis: lapsesIn };
    if (hits === undefined || (holdMillis !== undefined && !isHeld)) return 'unknown';
    const isOfWindow = this.#ids.amend(id, hits);
    const amended = this.#further.filter((window) => window.amend(id, hits));
    if (isHeld) return { holdMillis: lapsesIn };
    return isOfWindow || amended.length > 0 ? {} : 'unknown';
  }

  /** The hits of an approval that counts, as far as they are known; undefined if it does not count. */
  #hitsOf(id: string): number | undefined {
    const ofFurther = (): number | undefined =>
      this.#further.map((window) => window.takenBy(id)).find((hits) => hits !== undefined);
    return this.#holds?.hitsOf(id) ?? this.#ids.hitsOf(id) ?? ofFurther();
  }

  #makeRoom(id: string, hits: number): boolean {
    return [this.#ids, ...this.#further].every((ids) => ids.makeRoom(id, hits));
  }

  /**
   * Whether a release can be expected: an approval is held now, or something was given back in the current window of a
   * limit or in the one before.
   * @param window of the key
   */
  expectRelease(window: { readonly start: number; readonly millis: number }): boolean {
    if (this.hasHolds) return true;
    return [window, ...this.#further].some(
      ({ start, millis }) => this.#releasedAt >= start - millis,
    );
  }

  /** Ends the holds that have lapsed, and the windows of further limits that are over. */
  roll(now: number): void {
    // A lapse may be noticed late.
    this.#releasedAt = this.#holds?.endLapsed(now) ?? this.#releasedAt;
    for (const window of this.#further) window.roll(now);
  }

  /**
   * Takes the further limits of other rules. A limit that there was before keeps what was approved in its window.
   * @param limits undefined if there are none
   */
  takeFurther(now: number, limits: readonly FurtherLimit[] = []): void {
    const before = this.#further;
    this.#further = limits.map((limit) => {
      const kept = before.find((window) => window.counts(limit));
      kept?.change(now, limit);
      return kept ?? new FurtherWindow(now, limit, this.bounds.maxIdsPerKey, this.room);
    });
    for (const window of before) if (!this.#further.includes(window)) window.clear();
  }

  /** The window of the key is over. */
  endWindow(): void {
    this.#ids.clear();
  }

  /** Gives back the memory of further limits whose windows are over. Nothing else changes. */
  forgetEnded(now: number): void {
    for (const window of this.#further) if (now >= window.end) window.clear();
  }

  /** Gives back all memory. */
  clear(): void {
    this.#ids.clear();
    this.#holds?.clear();
    for (const window of this.#further) window.clear();
  }

  /** Changes the approvals, and notes when they take less than before. */
  #change<Result>(now: number, change: () => Result): Result {
    const before = this.#takenOfAll;
    const result = change();
    if (this.#takenOfAll < before) this.#releasedAt = now;
    return result;
  }

  /** What they take of all limits together. */
  get #takenOfAll(): number {
    return this.#further.reduce((sum, window) => sum + window.taken(this.#holds), this.hits);
  }
}
