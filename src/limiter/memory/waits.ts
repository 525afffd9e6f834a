import type { Clock } from '../../common/clock.js';
import type { ApprovalBatches, NotifiedWaiter } from '../approval-batches.js';
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
 * The requests that wait in this process, by a key's entry and their request ids. The place of a waiter ends when it is
 * removed.
 */
export class Waiters<Entry> {
  readonly #ofEntries = new Map<Entry, Map<string, Waiter>>();
  #size = 0;

  /** @param max the most that may wait */
  constructor(private readonly max: number) {}

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

  /** Adds a waiter whose request id no other waiter of the entry has. */
  add(entry: Entry, waiter: Waiter): void {
    const ofEntry = this.#ofEntries.get(entry) ?? new Map<string, Waiter>();
    this.#ofEntries.set(entry, ofEntry.set(waiter.requestId, waiter));
    this.#size += 1;
  }

  /** Removes the waiter with a request id. @returns undefined if there is none */
  take(entry: Entry, requestId: string): Waiter | undefined {
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
  remove(entry: Entry, waiter: Waiter): boolean {
    if (this.#find(entry, waiter.requestId) !== waiter) return false;
    this.take(entry, waiter.requestId);
    return true;
  }

  /** Fails the check that waits with a request id, if there is one. */
  fail(entry: Entry, requestId: string, conflict: RequestIdConflict): void {
    this.take(entry, requestId)?.conflict(conflict);
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

  /** The waiters whose checks have ended, since their places are kept. */
  keptAlone(): [Entry, Waiter][] {
    return [...this.#ofEntries].flatMap(([entry, ofEntry]) =>
      [...ofEntry.values()]
        .filter(({ decided }) => decided)
        .map((waiter): [Entry, Waiter] => [entry, waiter]),
    );
  }

  #find(entry: Entry, requestId: string): Waiter | undefined {
    return this.#ofEntries.get(entry)?.get(requestId);
  }
}

interface WaitsParts<Entry> {
  readonly waiters: Waiters<Entry>;
  readonly approvals: Pick<ApprovalBatches, 'approve'>;
  readonly clock: Clock;
  /** The time of operations. */
  readonly now: () => number;
  /** Called when somebody has begun to wait, or waits no longer. */
  readonly onChange: (entry: Entry) => void;
}

/** The waits in this process, from the place to the decision. Those with `keepMillis` have places that may outlive their checks. */
export class Waits<Entry extends { readonly instance: Instance }> {
  #isStopping = false;

  constructor(private readonly parts: WaitsParts<Entry>) {}

  /** Waits in the place that a check has got. */
  wait(entry: Entry, waiter: Waiter, caller: CallerPresence | undefined): Promise<Decision> {
    const { waiters, clock, onChange } = this.parts;
    waiters.add(entry, waiter);
    const expire = (): void => this.#expire(entry, waiter);
    if (waiter.keepMillis === undefined) {
      waiter.withdrawOnDisconnect(caller, () => {
        waiters.remove(entry, waiter);
        this.#withdraw(entry, waiter);
      });
      waiter.onceExpired(clock, expire);
    } else {
      this.#keepLater(entry, waiter, caller, expire);
    }
    onChange(entry);
    return waiter.decision;
  }

  /** The turns of these requests have come. */
  granted(entry: Entry, requestIds: readonly string[]): void {
    const quota = entry.instance.quota(this.parts.now());
    for (const requestId of requestIds) this.#granted(entry, requestId, quota);
    // A hold that begins now may be the first to lapse.
    this.parts.onChange(entry);
  }

  /** The process stops, and no other has the places: those end whose callers are not here. */
  handOver(): void {
    this.#isStopping = true;
    for (const [entry, waiter] of this.parts.waiters.keptAlone()) this.#endKeeping(entry, waiter);
  }

  /** With `keepMillis` the approval is kept for its caller, who gets it now if a check of the request is here. */
  #granted(entry: Entry, requestId: string, quota: Quota): void {
    const { waiters, approvals, now } = this.parts;
    const waiter = waiters.take(entry, requestId);
    if (!waiter) return;
    const { keepMillis, decided } = waiter;
    const nothing = (): void => undefined;
    if (keepMillis === undefined) {
      // If the caller disconnects before it is notified, the callback of `wait` releases the approval.
      approvals.approve(waiter, nothing, quota);
    } else if (!decided) {
      approvals.approve(this.#claiming(entry, waiter), nothing, quota, now() + keepMillis);
    }
  }

  #keepLater(
    entry: Entry,
    waiter: Waiter,
    caller: CallerPresence | undefined,
    expire: () => void,
  ): void {
    const { clock, now } = this.parts;
    const { instance } = entry;
    const { requestId } = waiter;
    waiter.onceExpired(clock, expire, instance.waitedMillis(now(), requestId));
    waiter.keepOnDisconnect(caller, () => this.#keep(entry, waiter, undefined));
    waiter.onceAnswerDue(clock, () =>
      this.#keep(entry, waiter, placeIn(instance.statusOf(now(), requestId))),
    );
  }

  #keep(entry: Entry, waiter: Waiter, place: PlaceInQueue | undefined): void {
    waiter.keep(place, this.parts.clock, () => this.#endKeeping(entry, waiter));
    if (this.#isStopping) this.#endKeeping(entry, waiter);
  }

  /** Withdraws a request whose caller has not come back in time. */
  #endKeeping(entry: Entry, waiter: Waiter): void {
    if (this.parts.waiters.remove(entry, waiter)) this.#withdraw(entry, waiter);
  }

  /** Denies a request whose longest wait is over, unless its turn has come at this moment. */
  #expire(entry: Entry, waiter: Waiter): void {
    const now = this.parts.now();
    entry.instance.settle(now);
    if (!this.parts.waiters.remove(entry, waiter)) return;
    // Before the next one is served, as Redis tells it.
    const quota = entry.instance.quota(now);
    this.#withdraw(entry, waiter, now);
    waiter.expire(quota);
  }

  #withdraw(entry: Entry, { requestId, claimNumber }: Waiter, now = this.parts.now()): void {
    entry.instance.withdraw(now, requestId, claimNumber);
    this.parts.onChange(entry);
  }

  /** A waiter that gets its approval, which is kept for it, when it is notified. */
  #claiming({ instance }: Entry, waiter: Waiter): NotifiedWaiter {
    const { requestId, claimNumber = 0 } = waiter;
    return {
      fail: (error) => waiter.fail(error),
      approveFromQueue: () => {
        if (waiter.decided) return false;
        const now = this.parts.now();
        const claimed = instance.claim(now, requestId, claimNumber);
        if (claimed === 'claimed') return waiter.approveFromQueue(instance.quota(now));
        if (claimed === 'store_full') waiter.fail(new StoreFullError());
        else waiter.conflict('taken_over');
        return false;
      },
    };
  }
}
