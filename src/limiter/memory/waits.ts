import type { Clock } from '../../common/clock.js';
import { eventLoop } from '../../common/ticks.js';
import { ApprovalBatches, type NotifiedWaiter } from '../approval-batches.js';
import { type RequestIdConflict, StoreFullError } from '../errors.js';
import {
  type CheckRequest,
  type Decision,
  placeIn,
  type PlaceInQueue,
  type Quota,
} from '../limiter.js';
import type { CallerPresence } from '../request.js';
import type { Waiter } from '../waiter.js';
import type { Instance } from './instance.js';

/**
 * The requests that wait in this process, by a key's entry and their request ids, from the place to the decision. A place
 * with `keepMillis` may outlive its check. The place of a waiter ends when it is removed.
 */
export class Waits<Entry extends { readonly instance: Instance }> {
  readonly #ofEntries = new Map<Entry, Map<string, Waiter>>();
  readonly #approvals: ApprovalBatches;
  #size = 0;
  #isStopping = false;

  /**
   * @param max the most that may wait
   * @param now the time of operations
   * @param onChange called when somebody has begun to wait, or waits no longer
   */
  constructor(
    private readonly max: number,
    private readonly clock: Clock,
    private readonly now: () => number,
    private readonly onChange: (entry: Entry) => void,
  ) {
    this.#approvals = new ApprovalBatches(eventLoop, clock);
  }

  get size(): number {
    return this.#size;
  }

  /** The entries with waiters. */
  get entries(): Iterable<Entry> {
    return this.#ofEntries.keys();
  }

  /** Says in a check that can wait whether it has a place. One that takes a place over needs no further one. */
  withPlace(request: CheckRequest, entry: Entry, requestId: string): CheckRequest {
    const { noPlace = false } = request;
    const isThere = this.#find(entry, requestId) !== undefined;
    const lacksPlace = (noPlace || this.#size >= this.max) && !isThere;
    return lacksPlace === noPlace ? request : { ...request, noPlace: lacksPlace };
  }

  /** Waits in the place that a check has got. No other waiter of the entry has its request id. */
  wait(entry: Entry, waiter: Waiter, caller: CallerPresence | undefined): Promise<Decision> {
    const ofEntry = this.#ofEntries.get(entry) ?? new Map<string, Waiter>();
    this.#ofEntries.set(entry, ofEntry.set(waiter.requestId, waiter));
    this.#size += 1;
    const expire = (): void => this.#expire(entry, waiter);
    if (waiter.request.keepMillis === undefined) {
      waiter.withdrawOnDisconnect(caller, () => {
        this.#remove(entry, waiter);
        this.#withdraw(entry, waiter);
      });
      waiter.onceExpired(this.clock, expire);
    } else {
      this.#keepLater(entry, waiter, caller, expire);
    }
    this.onChange(entry);
    return waiter.decision;
  }

  /** The turns of these requests have come. */
  granted(entry: Entry, requestIds: readonly string[]): void {
    const { instance } = entry;
    const now = this.now();
    const shared = instance.quota(now);
    for (const requestId of requestIds) {
      const waiter = this.#take(entry, requestId);
      if (!waiter) continue;
      const { list } = waiter.request;
      const hasOwn = instance.approvals.groups !== undefined && list !== undefined;
      this.#granted(entry, waiter, hasOwn ? instance.quota(now, list) : shared);
    }
    // A hold that begins now may be the first to lapse.
    this.onChange(entry);
  }

  /** Fails the check that waits with a request id, if there is one. */
  fail(entry: Entry, requestId: string, conflict: RequestIdConflict): void {
    this.#take(entry, requestId)?.conflict(conflict);
  }

  /** Removes all, and fails each with an error of its own. */
  failAll(createError: () => Error): void {
    const all = [...this.#ofEntries.values()].flatMap((ofEntry) => [...ofEntry.values()]);
    this.#ofEntries.clear();
    this.#size = 0;
    for (const waiter of all) {
      waiter.endPlace();
      waiter.fail(createError());
    }
  }

  /** The process stops, and no other has the places: those end whose callers are not here. */
  handOver(): void {
    this.#isStopping = true;
    for (const [entry, ofEntry] of [...this.#ofEntries]) {
      for (const waiter of [...ofEntry.values()]) {
        if (waiter.decided) this.#endKeeping(entry, waiter);
      }
    }
  }

  #find(entry: Entry, requestId: string): Waiter | undefined {
    return this.#ofEntries.get(entry)?.get(requestId);
  }

  /** Removes the waiter with a request id. @returns undefined if there is none */
  #take(entry: Entry, requestId: string): Waiter | undefined {
    const ofEntry = this.#ofEntries.get(entry);
    const waiter = ofEntry?.get(requestId);
    if (!ofEntry || !waiter) return undefined;
    ofEntry.delete(requestId);
    if (ofEntry.size === 0) this.#ofEntries.delete(entry);
    this.#size -= 1;
    waiter.endPlace();
    return waiter;
  }

  /** @returns false if it was removed before; another waiter may have its request id now */
  #remove(entry: Entry, waiter: Waiter): boolean {
    if (this.#find(entry, waiter.requestId) !== waiter) return false;
    this.#take(entry, waiter.requestId);
    return true;
  }

  /** With `keepMillis` the approval is kept for its caller, who gets it now if a check of the request is here. */
  #granted(entry: Entry, waiter: Waiter, quota: Quota): void {
    const { keepMillis } = waiter.request;
    const nothing = (): void => undefined;
    if (keepMillis === undefined) {
      // If the caller disconnects before it is notified, the callback of `wait` releases the approval.
      this.#approvals.approve(waiter, nothing, quota);
    } else if (!waiter.decided) {
      const heldUntil = this.now() + keepMillis;
      this.#approvals.approve(this.#claiming(entry, waiter), nothing, quota, heldUntil);
    }
  }

  #keepLater(
    entry: Entry,
    waiter: Waiter,
    caller: CallerPresence | undefined,
    expire: () => void,
  ): void {
    const { clock } = this;
    const { instance } = entry;
    const { requestId } = waiter;
    waiter.onceExpired(clock, expire, instance.waitedMillis(this.now(), requestId));
    waiter.onDisconnect(caller, () => this.#keep(entry, waiter, undefined));
    waiter.onceAnswerDue(clock, () =>
      this.#keep(entry, waiter, placeIn(instance.statusOf(this.now(), requestId))),
    );
  }

  #keep(entry: Entry, waiter: Waiter, place: PlaceInQueue | undefined): void {
    waiter.keep(place, this.clock, () => this.#endKeeping(entry, waiter));
    if (this.#isStopping) this.#endKeeping(entry, waiter);
  }

  /** Withdraws a request whose caller has not come back in time. */
  #endKeeping(entry: Entry, waiter: Waiter): void {
    if (this.#remove(entry, waiter)) this.#withdraw(entry, waiter);
  }

  /** Denies a request whose longest wait is over, unless its turn has come at this moment. */
  #expire(entry: Entry, waiter: Waiter): void {
    const now = this.now();
    entry.instance.settle(now);
    if (!this.#remove(entry, waiter)) return;
    // Before the next one is served, as Redis tells it.
    const quota = entry.instance.quota(now, waiter.request.list);
    this.#withdraw(entry, waiter, now);
    waiter.expire(quota);
  }

  #withdraw(entry: Entry, { request: { requestId, owner } }: Waiter, now = this.now()): void {
    entry.instance.withdraw(now, requestId, owner);
    this.onChange(entry);
  }

  /** A waiter that gets its approval, which is kept for it, when it is notified. */
  #claiming({ instance }: Entry, waiter: Waiter): NotifiedWaiter {
    const { requestId, owner = 0, list } = waiter.request;
    return {
      fail: (error) => waiter.fail(error),
      approveFromQueue: () => {
        if (waiter.decided) return false;
        const now = this.now();
        const claimed = instance.claim(now, requestId, owner);
        if (claimed === 'claimed') return waiter.approveFromQueue(instance.quota(now, list));
        if (claimed === 'store_full') waiter.fail(new StoreFullError());
        else waiter.conflict('taken_over');
        return false;
      },
    };
  }
}
