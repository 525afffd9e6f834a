import type { Approvals } from './approvals.js';
import type { MemoryBudget } from './memory-budget.js';
import { Moments } from './moments.js';
import type { Terms } from './terms.js';

/** What a record takes, measured. */
const BYTES_PER_RECORD = 300;
/** How long a record is remembered after its last change, in windows of its key: as long as an idle key is. */
export const REMEMBERED_WINDOWS = 3;
/** How many moments of records that have changed since may be left, besides one for each record. */
const MOST_OUTDATED = 100;

/** What all checks of a request have to ask for. */
type RecordedTerms = Required<Omit<Terms, 'list'>>;

/** What became of a request whose caller has chosen its id. */
export interface RequestRecord extends RecordedTerms {
  /** `granted`: approved, and kept until its caller has got the approval. */
  readonly state: 'waiting' | 'granted' | 'approved' | 'released';
  /** The number of the claim of the check that it belongs to. */
  readonly owner: number;
}

interface Remembered extends RequestRecord {
  state: RequestRecord['state'];
  owner: number;
  /** When it changed last; in the future for an approval whose hold lapses then. */
  changedAt: number;
  /** When it is looked at, to be forgotten. Undefined while it waits. */
  lookAt: number | undefined;
}

/**
 * The records of a key's requests whose callers have chosen their ids. A record is forgotten three windows after its last
 * change, but never while its request waits or its approval counts. The record of a granted request is forgotten
 * when its hold lapses. Times are milliseconds of a clock.
 */
export class RequestRecords {
  readonly #records = new Map<string, Remembered>();
  /** Has a moment for each record that does not wait. */
  readonly #order = new Moments();

  /**
   * @param approvals those of the key
   * @param max the most records that are kept
   */
  constructor(
    private approvals: Approvals,
    private readonly max: number,
    private readonly budget: MemoryBudget,
    /** Called when the hold of a granted approval has lapsed. */
    private readonly onUnclaimed: () => void = () => undefined,
  ) {}

  get size(): number {
    return this.#records.size;
  }

  get isFull(): boolean {
    return this.#records.size >= this.max;
  }

  /** The key was removed while it was idle, and is created again: from now on it has these approvals. */
  continueWith(approvals: Approvals): void {
    this.approvals = approvals;
  }

  find(id: string): RequestRecord | undefined {
    return this.#records.get(id);
  }

  /** The record as `forget` would leave it. @param counts whether the request is approved and counts */
  findAt(now: number, id: string, counts: boolean): RequestRecord | undefined {
    const record = this.#records.get(id);
    const isOver = record?.lookAt !== undefined && !counts && this.#endOf(record) <= now;
    return isOver ? undefined : record;
  }

  /**
   * Adds the record of a request that waits, also if it is approved at the same moment.
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(id: string, { hits, holdMillis, holder }: RecordedTerms, owner: number): boolean {
    if (!this.budget.take(BYTES_PER_RECORD)) return false;
    const changedAt = -Infinity;
    this.#records.set(id, {
      state: 'waiting',
      hits,
      holdMillis,
      holder,
      owner,
      changedAt,
      lookAt: undefined,
    });
    return true;
  }

  /** Does nothing for an id without a record. */
  approve(now: number, id: string): void {
    const record = this.#records.get(id);
    if (record) this.#change(now, id, record, 'approved');
  }

  /** The request is approved, and its approval is kept until its caller has got it. */
  grant(now: number, id: string): void {
    const record = this.#records.get(id);
    if (record) this.#change(now, id, record, 'granted');
  }

  /** The approval was released. */
  release(now: number, id: string): void {
    const record = this.#records.get(id);
    if (record) this.#change(now, id, record, 'released');
  }

  /** Gives a request to a later check. */
  giveTo(now: number, id: string, owner: number): void {
    const record = this.#records.get(id);
    if (!record) return;
    record.owner = owner;
    if (record.state !== 'waiting') this.#change(now, id, record, record.state);
  }

  /** The hold of an approval may lapse at another time than before. Does nothing for an id without a record. */
  noteRenewal(now: number, id: string): void {
    const record = this.#records.get(id);
    if (record?.state === 'approved') this.#change(now, id, record, 'approved');
  }

  remove(id: string): void {
    if (!this.#records.delete(id)) return;
    this.budget.giveBack(BYTES_PER_RECORD);
    if (this.#records.size === 0) this.#order.clear();
  }

  /** Forgets the records whose time is over. */
  forget(now: number): void {
    for (let next = this.#order.first; next && next.at <= now; next = this.#order.first) {
      this.#order.removeFirst();
      const record = this.#records.get(next.id);
      if (record?.lookAt !== next.at) continue;
      const isUnclaimed = record.state === 'granted';
      // Among others, a report may have made the window longer.
      if (!isUnclaimed && this.approvals.counts(now, next.id)) {
        record.changedAt = Math.max(record.changedAt, now);
      }
      if (this.#endOf(record) > now) {
        this.#lookLater(next.id, record);
        continue;
      }
      this.remove(next.id);
      if (isUnclaimed) this.onUnclaimed();
    }
  }

  #change(now: number, id: string, record: Remembered, state: RequestRecord['state']): void {
    record.state = state;
    record.changedAt = this.approvals.holds?.lapseOf(id) ?? now;
    // If it is to be forgotten later than before, that is seen when it is looked at.
    if (record.lookAt === undefined || this.#endOf(record) < record.lookAt) {
      this.#lookLater(id, record);
    }
  }

  #endOf({ state, changedAt }: Remembered): number {
    return state === 'granted'
      ? changedAt
      : changedAt + REMEMBERED_WINDOWS * this.approvals.window.millis;
  }

  #lookLater(id: string, record: Remembered): void {
    record.lookAt = this.#endOf(record);
    this.#order.add({ id, at: record.lookAt });
    if (this.#order.size <= MOST_OUTDATED + 2 * this.#records.size) return;
    this.#order.clear();
    for (const [each, { lookAt }] of this.#records) {
      if (lookAt !== undefined) this.#order.add({ id: each, at: lookAt });
    }
  }
}
