import type { CheckRequest } from '../limiter.js';
import {
  isHeld,
  LABELS,
  otherTerm,
  type RequestState,
  type RequestTerms,
  STATES,
  termsOf,
} from '../request.js';
import type { Approvals } from './approvals.js';
import type { InstanceDecision, RecordDecision } from './instance-decision.js';
import { Heap, type HeapItem } from './heap.js';
import { arrivalOf } from './queue/waiting-list.js';
import type { WaitingQueue } from './queue/waiting-queue.js';

/** What a record takes, measured. */
const BYTES_PER_RECORD = 300;
/** How long a record is remembered after its last change, in windows of its key: as long as an idle key is. */
const REMEMBERED_WINDOWS = 3;

/**
 * The owner of an approval of which several checks were told: none of them gives it back, since the caller may use it. It may
 * have the answer to a check that was sent after the last one, if a frozen replica decides that one late.
 */
const NO_CHECK = 0;

/** A request whose caller has chosen its id. */
export interface RequestRecord extends HeapItem {
  readonly id: string;
  /** What all its checks have to ask for. */
  readonly request: RequestTerms;
  /** The number of the claim of the check that it belongs to. */
  owner: number;
  state: RequestState;
  /** When it changed last; in the future for an approval whose hold lapses then. */
  changedAt: number;
  /** When it may be forgotten, or later. Infinite while it waits. */
  dueAt: number;
}

/**
 * The requests of a key whose callers have chosen their ids. All checks with an id are one request, which belongs to the
 * latest of them. The checks have numbers, as in their claims.
 *
 * A request is forgotten three windows after its last change, but never while it waits or its approval counts. An unclaimed one
 * is forgotten when its hold lapses. Times are milliseconds of a clock.
 */
export class NamedRequests {
  readonly #records = new Map<string, RequestRecord>();
  readonly #order = new Heap<RequestRecord>((one, other) => one.dueAt < other.dueAt);

  /**
   * @param approvals those of the key
   * @param queue the queue of the key
   * @param onUnclaimed called when an approval has lapsed that was kept for its caller
   */
  constructor(
    private approvals: Approvals,
    private queue: WaitingQueue,
    private readonly onUnclaimed: () => void = () => undefined,
  ) {}

  /** Whether it has any. */
  get hasAny(): boolean {
    return this.#records.size > 0;
  }

  /** The key was removed while it was idle, and is created again with these approvals and this queue. */
  continueWith(approvals: Approvals, queue: WaitingQueue): void {
    this.approvals = approvals;
    this.queue = queue;
  }

  /**
   * Decides a check by the record of its request.
   * @param number of the check
   * @param decideNew decides it if there is no record, and gets the terms that are kept
   */
  decide(
    now: number,
    id: string,
    request: CheckRequest,
    number: number,
    decideNew: (terms: RequestTerms) => InstanceDecision,
  ): InstanceDecision | RecordDecision {
    const record = this.#records.get(id);
    if (record) return this.#decideKnown(now, id, record, request, number);
    // Those that wait are bounded by the queue.
    const most = REMEMBERED_WINDOWS * this.approvals.bounds.maxIdsPerKey;
    if (this.#records.size - this.queue.size >= most) return 'key_full';
    const terms = termsOf(request);
    if (!this.add(id, terms, number)) return 'store_full';
    const decision = decideNew(terms);
    if (decision === 'approved') this.approve(now, id);
    else if (decision === 'waiting') this.become(now, id, 'waiting');
    else this.#remove(id);
    return decision;
  }

  /** The record of a request as `forget` would leave it. @param counts whether the request is approved and counts */
  recordAt(now: number, id: string, counts: boolean): Readonly<RequestRecord> | undefined {
    const record = this.#records.get(id);
    const isOver = record && record.dueAt < Infinity && !counts && this.#endOf(record) <= now;
    return isOver ? undefined : record;
  }

  /** The state of a request. @returns undefined if it is unknown */
  stateOf(id: string): RequestState | undefined {
    const record = this.#records.get(id);
    const hasLapsed = record?.state === 'held' && this.approvals.holds?.get(id) === undefined;
    return hasLapsed ? 'lapsed' : record?.state;
  }

  /**
   * Adds a new request.
   * @param request its terms, which it keeps
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(id: string, request: RequestTerms, owner: number): boolean {
    if (!this.approvals.budget.take(BYTES_PER_RECORD)) return false;
    const undue = { changedAt: -Infinity, dueAt: Infinity, index: 0 };
    const record: RequestRecord = { id, request, owner, state: 'new', ...undue };
    this.#records.set(id, record);
    this.#order.add(record);
    return true;
  }

  /** A request is approved, or its caller has got its approval. Does nothing for an id without a record. */
  approve(now: number, id: string): void {
    const record = this.#records.get(id);
    if (record) this.become(now, id, isHeld(record.request) ? 'held' : 'approved');
  }

  /** These requests were approved from the queue. Some may have no record. */
  approveAll(now: number, ids: readonly string[]): void {
    for (const id of ids) {
      const isUnclaimed = this.approvals.holds?.get(id)?.state === 'unclaimed';
      if (isUnclaimed) this.become(now, id, 'unclaimed');
      else this.approve(now, id);
    }
  }

  /** A request gets another state. Does nothing for an id without a record. */
  become(now: number, id: string, state: RequestState): void {
    const record = this.#records.get(id);
    if (!record) return;
    if (!STATES[record.state].next.includes(state)) {
      throw new Error(`a request that was ${record.state} is ${state}`);
    }
    record.state = state;
    if (state !== 'waiting') this.#noteChange(now, record);
  }

  /**
   * The check with this number gets the approval of its request, which was kept for it.
   * @returns `lapsed` also if the request belongs to another check
   */
  claim(now: number, id: string, number: number): ClaimOutcome {
    const record = this.#records.get(id);
    if (record?.state !== 'unclaimed' || record.owner !== number) return 'lapsed';
    if (!this.approvals.claim(now, id)) return 'store_full';
    this.approve(now, id);
    return 'claimed';
  }

  /**
   * Releases an approval, or withdraws a request that waits.
   * @param isUnused nobody has got the approval: afterwards the id is unknown
   * @param number of the check that gives its approval back. Nothing changes if the request belongs to a later one.
   * @returns whether it waited, or counted; undefined if the id is unknown
   */
  release(
    now: number,
    id: string,
    isUnused: boolean,
    number: number | undefined,
  ): boolean | undefined {
    const record = this.#records.get(id);
    if (!record) return undefined;
    if (number !== undefined && number !== record.owner) return false;
    if (record.state === 'released') return false;
    if (record.state === 'waiting') return this.#withdraw(id);
    const hasNobody = isUnused || record.state === 'unclaimed';
    const isReleased = this.approvals.release(now, id, hasNobody);
    if (hasNobody) this.#remove(id);
    else if (isReleased) this.become(now, id, 'released');
    return isReleased;
  }

  /** The hold of an approval may lapse at another time than before. Does nothing for an id without a record. */
  noteRenewal(now: number, id: string): void {
    const record = this.#records.get(id);
    if (record && hasApproval(record)) this.#noteChange(now, record);
  }

  /** Forgets the requests whose time is over. */
  forget(now: number): void {
    for (
      let record = this.#order.first;
      record && record.dueAt <= now;
      record = this.#order.first
    ) {
      const isUnclaimed = record.state === 'unclaimed';
      // Among others, a report may have made the window longer.
      if (!isUnclaimed && this.approvals.counts(now, record.id)) {
        record.changedAt = Math.max(record.changedAt, now);
      }
      if (this.#endOf(record) > now) {
        this.#becomeDue(record);
        continue;
      }
      this.#remove(record.id);
      if (isUnclaimed) this.onUnclaimed();
    }
  }

  #decideKnown(
    now: number,
    id: string,
    record: RequestRecord,
    check: CheckRequest,
    number: number,
  ): InstanceDecision | RecordDecision {
    const { canWait, noPlace = false, keepMillis } = check;
    const other = otherTerm(['hits', 'holdMillis'], record.request, check);
    if (other) return other;
    const state = this.stateOf(id);
    if (state === 'released' || state === 'lapsed') return 'used';
    const otherLabel = otherTerm(LABELS, record.request, check);
    if (otherLabel) return otherLabel;
    const isWaiting = state === 'waiting';
    if (isWaiting && (!canWait || this.#waitIsOver(now, id, check))) {
      this.#withdraw(id);
      return 'wait_expired';
    }
    if (isWaiting && noPlace) return 'no_place';
    const isToldAgain = hasApproval(record) && number !== record.owner;
    record.owner = isToldAgain ? NO_CHECK : number;
    if (!isWaiting) this.#noteChange(now, record);
    if (state === 'unclaimed') {
      return this.claim(now, id, number) === 'store_full' ? 'store_full' : 'approved';
    }
    if (!isWaiting) return 'approved';
    const queued = this.queue.find(id);
    if (queued) this.queue.replace({ ...queued, keepMillis });
    return 'takes_over';
  }

  /** Whether the longest wait of a request is over. With `keepMillis` it has begun when the request got its place. */
  #waitIsOver(now: number, id: string, { maxWaitMillis, keepMillis }: CheckRequest): boolean {
    if (maxWaitMillis === undefined) return false;
    // Also if the clock has gone back since.
    if (maxWaitMillis === 0) return true;
    const queued = keepMillis === undefined ? undefined : this.queue.find(id);
    return (queued ? arrivalOf(queued) : now) + maxWaitMillis <= now;
  }

  #withdraw(id: string): boolean {
    this.#remove(id);
    // A group that it has stopped until now is not idle: its windows go on.
    this.approvals.noteStop(this.queue.find(id)?.list);
    const waiter = this.queue.remove(id);
    this.approvals.noteStop(waiter?.list);
    return waiter !== undefined;
  }

  #remove(id: string): void {
    const record = this.#records.get(id);
    if (!record) return;
    this.#records.delete(id);
    this.#order.remove(record);
    this.approvals.budget.giveBack(BYTES_PER_RECORD);
  }

  #noteChange(now: number, record: RequestRecord): void {
    record.changedAt = this.approvals.holds?.get(record.id)?.lapsesAt ?? now;
    // If it is to be forgotten later than before, that is seen when it is due.
    if (this.#endOf(record) < record.dueAt) this.#becomeDue(record);
  }

  #endOf({ state, changedAt }: RequestRecord): number {
    return state === 'unclaimed'
      ? changedAt
      : changedAt + REMEMBERED_WINDOWS * this.approvals.window.millis;
  }

  #becomeDue(record: RequestRecord): void {
    record.dueAt = this.#endOf(record);
    this.#order.update(record);
  }
}

/** What becomes of an approval that was kept for its caller. */
export type ClaimOutcome = 'claimed' | 'lapsed' | 'store_full';

/** Whether the caller of a request has got an approval that it has not released. */
function hasApproval({ state }: RequestRecord): boolean {
  return state === 'approved' || state === 'held';
}
