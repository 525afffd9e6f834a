import type { RemainingReport } from '../../limiter.js';
import { isSameAlgorithm, type Limit } from '../../limits.js';
import { ApprovedIds } from './approved-ids.js';
import { CountedLimit, type KeyOfLimit } from './counted-limit.js';
import type { Window } from './window.js';

/** A limit whose approvals count until its window ends. `lua/limits/fixed-window.lua` has the same rules. */
export class FixedWindow extends CountedLimit {
  override maximum: number;
  protected override ids: ApprovedIds;
  /** What is carried over from a limit of another kind. */
  #carried = 0;
  /** What was given back of the hits of ids that are still there. */
  #refunded = 0;
  /** Whether hits of this window were refunded. */
  #hasRefunds = false;
  /** What a vendor counts besides, by its report; 0 without a report. */
  #surplus = 0;
  /** What counts at least during the report. */
  #floor = 0;

  constructor(limit: Limit, window: Window, key: KeyOfLimit) {
    super(limit, window, key);
    this.maximum = limit.maximum;
    this.ids = new ApprovedIds(key.budget);
  }

  get countsUntil(): number {
    return this.window.end;
  }

  get sum(): number {
    return this.#counted + this.#surplus;
  }

  override get isFull(): boolean {
    return this.used >= this.#mostHits;
  }

  /**
   * When the window or a report ends or a hold lapses. While held approvals take all of the maximum, the window's end makes
   * no room.
   */
  roomAt(): number {
    const windowEnd = this.#surplus > 0 ? this.window.reportedUntil : this.window.end;
    const { nextLapse: lapse } = this;
    if (lapse === Infinity) return windowEnd;
    const held = this.used - this.sum;
    return held >= this.maximum ? lapse : Math.min(windowEnd, lapse);
  }

  roll(now: number, ofRules: number): boolean {
    const hasRolled = this.window.rollTo(now, ofRules);
    if (hasRolled) this.clear();
    else if (this.#endsReportFirst && now >= this.window.reportedUntil) this.#forgetReport();
    else this.noteGivenBack();
    return hasRolled;
  }

  override isCurrentAt(now: number): boolean {
    return now < this.window.end && this.window.reportedUntil === -Infinity;
  }

  /**
   * Takes what a vendor says remains of the limit, if that is less than what is left here. The window lasts at least until
   * the vendor's limit resets.
   */
  override report(now: number, { remaining, resetMillis }: RemainingReport): boolean {
    const floor = Math.max(0, this.maximum - remaining);
    const { used } = this;
    if (floor < used || (floor === used && this.#surplus === 0)) return true;
    this.window.setReportedUntil(resetMillis === undefined ? this.window.end : now + resetMillis);
    this.#surplus += floor - used;
    this.#floor = floor;
    return true;
  }

  /** During a report it counts for the vendor, so that a later approval counts on top of the floor. */
  override noteGivenBack(): void {
    if (this.#floor > 0) this.#surplus += Math.max(0, this.#floor - this.used);
  }

  take(id: string, hits: number, isHeld: boolean): boolean {
    return !this.keepsIdOf(isHeld) || this.ids.add(id, this.takenOf(hits));
  }

  giveBack(id: string, isUnused: boolean): boolean {
    const isReleased = (isUnused || !this.limit.keepsReleased) && this.ids.release(id);
    this.#refundNoMoreThanCounts();
    return isReleased;
  }

  override refund(hits: number): number {
    if (this.limit.keepsReleased || this.limit.counts !== 'hits') return 0;
    const refunded = Math.min(hits, this.#counted);
    this.#refunded += refunded;
    this.#hasRefunds ||= refunded > 0;
    return refunded;
  }

  override takeRest(now: number, hits: number): void {
    const hasRest = this.limit.counts === 'hits' && this.used < this.maximum;
    if (hasRest && !this.fits(hits)) this.report(now, { remaining: 0 });
  }

  takenBy(id: string): number | undefined {
    return this.ids.hitsOf(id);
  }

  override reserve(id: string, hits: number): boolean {
    return this.ids.reserve(id, this.takenOf(hits));
  }

  amend(id: string, hits: number): boolean {
    const isAmended = this.ids.amend(id, this.takenOf(hits));
    this.#refundNoMoreThanCounts();
    return isAmended;
  }

  millisToTurn(
    now: number,
    before: number,
    hits: number,
    laterMillis: number,
    laterMaximum?: number,
  ): number {
    const most = hits === 1 ? this.#mostHits : this.maximum;
    const room = Math.max(0, most - this.used);
    if (before + Math.min(this.takenOf(hits), most) <= room) return 0;
    const later = laterMaximum ?? most;
    const missing = before + Math.min(this.takenOf(hits), later) - room;
    const opens = this.#endsReportFirst ? Math.max(0, most - this.used + this.#surplus) - room : 0;
    if (this.#endsReportFirst && missing <= opens) return this.window.reportedUntil - now;
    // A lower maximum that comes may leave nothing to be had.
    const windows = missing > opens ? Math.ceil((missing - opens) / later) - 1 : 0;
    return this.window.millisToEndAfter(now, windows, laterMillis);
  }

  /**
   * If the window is over by a shorter length, its approvals count in the window that is current by that length: ids have
   * no times, and some were approved in it.
   */
  change(now: number, limit: Limit): void {
    this.limit = limit;
    this.maximum = limit.maximum;
    this.window.change(now, limit.windowMillis);
  }

  carry(sum: number): void {
    this.#carried += sum;
  }

  copy(key: KeyOfLimit, window = this.window.copy()): FixedWindow {
    const copy = new FixedWindow(this.limit, window, key);
    copy.maximum = this.maximum;
    copy.ids = this.ids.copy();
    copy.#carried = this.#carried;
    copy.#refunded = this.#refunded;
    copy.#hasRefunds = this.#hasRefunds;
    copy.#surplus = this.#surplus;
    copy.#floor = this.#floor;
    return copy;
  }

  protected override hasSameSteps(other: Limit): boolean {
    return isSameAlgorithm(this.limit, other);
  }

  forgetEnded(now: number): void {
    if (now >= this.window.end) this.clear();
  }

  clear(): void {
    this.ids.clear();
    this.#carried = 0;
    this.#refunded = 0;
    this.#hasRefunds = false;
    this.#surplus = 0;
    this.#floor = 0;
  }

  /** What the approvals take that are not held. */
  get #counted(): number {
    return this.ids.hits + this.#carried - this.#refunded;
  }

  /** An approval whose hits were refunded may be given back. Less than nothing never counts. */
  #refundNoMoreThanCounts(): void {
    this.#refunded = Math.min(this.#refunded, this.ids.hits + this.#carried);
  }

  /** Whether a report is in force that ends before the window. */
  get #endsReportFirst(): boolean {
    return this.#surplus > 0 && this.window.reportedUntil < this.window.end;
  }

  #forgetReport(): void {
    this.window.setReportedUntil(undefined);
    this.#surplus = 0;
    this.#floor = 0;
  }

  /** How many hits a window may have: no more than ids are kept, if each of them has one hit. */
  get #mostHits(): number {
    return this.#haveOneEach ? Math.min(this.maximum, this.maxIds) : this.maximum;
  }

  /** Whether there are as many ids as the limit counts. Of the hits of a further limit Redis does not know it. */
  get #haveOneEach(): boolean {
    const { name, counts } = this.limit;
    const firstLapse = this.key.holds?.firstLapse ?? Infinity;
    if (firstLapse < Infinity || this.#carried + this.#surplus > 0) return false;
    return name === undefined ? !this.ids.hasHits && !this.#hasRefunds : counts === 'requests';
  }
}
