import type { CheckRequest } from '../limiter.js';
import type { Approvals } from './approvals.js';
import type { InstanceDecision, RecordDecision } from './instance-decision.js';
import { arrivalOf } from './queue/tickets.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import { REMEMBERED_WINDOWS, type RequestRecord, RequestRecords } from './request-records.js';

/**
 * The owner of an approval of which several checks were told: none of them gives it back, since the caller may use it. It may
 * have the answer to a check that was sent after the last one, if a frozen replica decides that one late.
 */
const NO_CHECK = 0;

/**
 * The requests of a key whose callers have chosen their ids. All checks with an id are one request, which belongs to the
 * latest of them. The checks have numbers, as in their claims.
 */
export class KnownRequests {
  /** @param queue returns the queue of the key, which may have another one later */
  constructor(
    private approvals: Approvals,
    private queue: () => WaitingQueue,
    private readonly records: RequestRecords,
  ) {}

  /** Whether it has any. */
  get hasAny(): boolean {
    return this.records.size > 0;
  }

  /** The key was removed while it was idle, and is created again with these approvals and this queue. */
  continueWith(approvals: Approvals, queue: () => WaitingQueue): void {
    this.approvals = approvals;
    this.queue = queue;
    this.records.continueWith(approvals);
  }

  /**
   * Decides a check by the record of its request.
   * @param number of the check
   * @param decideNew decides it if there is no record
   */
  decide(
    now: number,
    id: string,
    request: CheckRequest,
    number: number,
    decideNew: () => InstanceDecision,
  ): InstanceDecision | RecordDecision {
    const record = this.records.find(id);
    if (record) return this.#decideKnown(now, id, record, request, number);
    if (this.records.isFull) return 'key_full';
    const { hits = 1, holdMillis, holder } = request;
    if (!this.records.add(id, { hits, holdMillis, holder }, number)) return 'store_full';
    const decision = decideNew();
    if (decision === 'approved') this.records.approve(now, id);
    else if (decision !== 'waiting') this.records.remove(id);
    return decision;
  }

  /** The record of a request. @param counts whether the request is approved and counts */
  recordAt(now: number, id: string, counts: boolean): RequestRecord | undefined {
    return this.records.findAt(now, id, counts);
  }

  /** These requests were approved from the queue. Some may have no record. */
  approve(now: number, ids: readonly string[]): void {
    for (const id of ids) {
      if (this.approvals.isUnclaimed(id)) this.records.grant(now, id);
      else this.records.approve(now, id);
    }
  }

  /** Whether the request is approved, and its caller has not got the approval. */
  isGranted(id: string): boolean {
    return this.records.find(id)?.state === 'granted';
  }

  /**
   * The check with this number gets the approval of its request, which was kept for it.
   * @returns `lapsed` also if the request belongs to another check
   */
  claim(now: number, id: string, number: number): ClaimOutcome {
    const record = this.records.find(id);
    if (record?.state !== 'granted' || record.owner !== number) return 'lapsed';
    if (!this.approvals.claim(now, id, record)) return 'store_full';
    this.records.approve(now, id);
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
    const record = this.records.find(id);
    if (!record) return undefined;
    if (number !== undefined && number !== record.owner) return false;
    if (record.state === 'released') return false;
    if (record.state === 'waiting') return this.#withdraw(id);
    const hasNobody = isUnused || record.state === 'granted';
    const isReleased = this.approvals.release(now, id, hasNobody);
    if (hasNobody) this.records.remove(id);
    else if (isReleased) this.records.release(now, id);
    return isReleased;
  }

  noteRenewal(now: number, id: string): void {
    this.records.noteRenewal(now, id);
  }

  /** Forgets the requests whose time is over. */
  forget(now: number): void {
    this.records.forget(now);
  }

  #decideKnown(
    now: number,
    id: string,
    record: RequestRecord,
    request: CheckRequest,
    number: number,
  ): InstanceDecision | RecordDecision {
    const { hits = 1, holdMillis, holder, canWait, noPlace = false } = request;
    if (hits !== record.hits) return 'other_hits';
    if (holdMillis !== record.holdMillis) return 'other_hold';
    const isOver =
      record.holdMillis !== undefined && this.approvals.holds?.hitsOf(id) === undefined;
    if (record.state === 'released' || (record.state === 'approved' && isOver)) return 'used';
    if (holder !== record.holder) return 'other_holder';
    const isWaiting = record.state === 'waiting';
    if (isWaiting && (!canWait || this.#waitIsOver(now, id, request))) {
      this.#withdraw(id);
      return 'wait_expired';
    }
    if (isWaiting && noPlace) return 'no_place';
    const isToldAgain = record.state === 'approved' && number !== record.owner;
    this.records.giveTo(now, id, isToldAgain ? NO_CHECK : number);
    if (record.state === 'granted') {
      return this.claim(now, id, number) === 'store_full' ? 'store_full' : 'approved';
    }
    if (!isWaiting) return 'approved';
    const queued = this.queue().find(id);
    if (queued) this.queue().replace({ ...queued, keepMillis: request.keepMillis });
    return 'takes_over';
  }

  /** Whether the longest wait of a request is over. With `keepMillis` it has begun when the request got its place. */
  #waitIsOver(now: number, id: string, { maxWaitMillis, keepMillis }: CheckRequest): boolean {
    if (maxWaitMillis === undefined) return false;
    const queued = keepMillis === undefined ? undefined : this.queue().find(id);
    return (queued ? arrivalOf(queued) : now) + maxWaitMillis <= now;
  }

  #withdraw(id: string): boolean {
    this.records.remove(id);
    return this.queue().remove(id);
  }
}

/** What becomes of an approval that was kept for its caller. */
export type ClaimOutcome = 'claimed' | 'lapsed' | 'store_full';

/**
 * The requests of a key that has none yet.
 * @param onUnclaimed called when an approval has lapsed that was kept for its caller
 */
export function knownOf(
  approvals: Approvals,
  queue: () => WaitingQueue,
  onUnclaimed: () => void,
): KnownRequests {
  const { bounds, budget } = approvals;
  const most = REMEMBERED_WINDOWS * bounds.maxIdsPerKey;
  const records = new RequestRecords(approvals, most, budget, onUnclaimed);
  return new KnownRequests(approvals, queue, records);
}
