import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import type { Ticks } from '../../common/ticks.js';
import type { CallerSettings } from '../scripts/shared-arguments.js';
import type { KeyNaming } from '../shared/key-names.js';
import type { WaitingStore } from '../scripts/scripts.js';
import { backoffMillis, type StoreObserver } from '../shared/store-observer.js';

const FIRST_RETRY_MILLIS = 50;

/** What all calls of a replica for its waiters have in common. */
export interface CallsParts extends Pick<CallerSettings, 'leaseMillis' | 'limitsOf'> {
  readonly naming: Pick<KeyNaming, 'namesOf'>;
  /** All names of a call are in one slot. */
  readonly slotOf: (name: string) => number;
  /** Whether the shard of a name in Redis is up, as far as is known. */
  readonly isAvailable: (name: string) => boolean;
  readonly store: WaitingStore;
  readonly observer: Pick<StoreObserver, 'catchingUp'>;
  readonly clock: Clock;
  readonly ticks: Ticks;
  readonly logger: Logger;
}

export interface BatchedCallsParts<Item> {
  readonly clock: Clock;
  /** With these, items that are added in one tick of the event loop share their calls. Without, each is sent at once. */
  readonly ticks?: Ticks;
  /** The items of a call are of one group. Default: each item has its own call. */
  readonly groupOf?: (item: Item) => unknown;
  /** The most items of a call, or the most that they take of it. Redis answers others between two calls. Default: 1. */
  readonly mostPerCall?: number;
  /** How much of a call an item takes. Default: 1. */
  readonly sizeOf?: (item: Item) => number;
  readonly mostUnderWay: number;
  /** What is counted under way. Default: calls. */
  readonly underWayCounts?: 'calls' | 'items';
  /** Whether an item still matters when its turn has come. If not, it is dropped. */
  readonly isWanted?: (item: Item) => boolean;
  /** Whether the store can be asked about an item, as far as is known. If not, it is retried later. */
  readonly isAvailable?: (item: Item) => boolean;
  /** An item's turn has come, but the store can't be asked. */
  readonly onNotAsked?: (item: Item) => void;
  /** Sends a call. It resolves when the reply is processed, and gives the items that failed to `addLater`. */
  readonly call: (items: readonly [Item, ...Item[]]) => Promise<void>;
  /** A call has failed. The next failures are not told until none is left to be retried. */
  readonly onFirstFailure?: (failure: unknown) => void;
  /** Called with the number of items that wait for their first call or the next one, when it has changed. */
  readonly onUndone?: (undone: number) => void;
}

/**
 * Calls to Redis that many items share. An outage leaves tens of thousands of items, so a call takes many, few calls are under
 * way at a time, and all items that have failed wait for one timer. It takes longer after each failure, and counts from the
 * beginning when no item is left that has failed.
 */
export class BatchedCalls<Item extends object> {
  /** What the next calls take, in the order of arrival, with their groups. */
  readonly #due = new Map<Item, unknown>();
  /** What is due, by its group. */
  readonly #groups = new Map<unknown, Set<Item>>();
  readonly #failed = new Set<Item>();
  /** Those that have failed, and whose next call is due or under way. */
  readonly #retried = new Set<Item>();
  #calls = 0;
  #underWay = 0;
  #isTickDue = false;
  #failures = 0;
  #cancelRetry: (() => void) | undefined;
  #told = 0;
  #onIdle: (() => void)[] = [];

  constructor(private readonly parts: BatchedCallsParts<Item>) {}

  /** Sends these items when their turns have come. Those that wait for the retry do not wait for it any more. */
  add(items: Iterable<Item>): void {
    for (const item of items) this.#addDue(item);
    if (this.parts.ticks) this.#sendInTick(this.parts.ticks);
    else this.#send();
  }

  /** Sends these items again later, since their call has failed. */
  addLater(items: Iterable<Item>, failure?: unknown): void {
    for (const item of items) this.#failed.add(item);
    this.#retryLater(failure);
    this.#changed();
  }

  /** An item needs no call any more. */
  remove(item: Item): void {
    this.#removeDue(item);
    this.#failed.delete(item);
    this.#retried.delete(item);
    if (this.#failed.size === 0) this.#endRetry();
    this.#changed();
  }

  /** Sends the items that have failed now, as when the store is up again. */
  retry(): void {
    this.#endRetry();
    if (this.#failed.size > 0) this.add([...this.#failed]);
  }

  /** Resolves when no call is due or under way. */
  async idle(): Promise<void> {
    if (!this.#isIdle) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Gives up the items that have failed. */
  close(): void {
    this.#endRetry();
    this.#failed.clear();
  }

  get #isIdle(): boolean {
    return this.#due.size === 0 && this.#calls === 0;
  }

  #addDue(item: Item): void {
    if (this.#failed.delete(item)) this.#retried.add(item);
    const group = this.parts.groupOf?.(item) ?? item;
    this.#due.set(item, group);
    const others = this.#groups.get(group);
    if (others) others.add(item);
    else this.#groups.set(group, new Set([item]));
  }

  #removeDue(item: Item): void {
    const group = this.#due.get(item);
    const ofGroup = this.#groups.get(group);
    this.#due.delete(item);
    ofGroup?.delete(item);
    if (ofGroup?.size === 0) this.#groups.delete(group);
  }

  #sendInTick(ticks: Ticks): void {
    if (this.#isTickDue) return;
    this.#isTickDue = true;
    ticks.next(() => {
      this.#isTickDue = false;
      this.#send();
    });
  }

  #send(): void {
    for (const group of this.#due.values()) {
      if (this.#underWay >= this.parts.mostUnderWay) break;
      const call = this.#nextCall(this.#groups.get(group) ?? []);
      if (this.#underWay + this.#countOf(call) > this.parts.mostUnderWay) break;
      for (const item of call) this.#removeDue(item);
      void this.#call(call);
    }
    this.#changed();
  }

  /** The first items of a group that can be asked about and still matter. Removes those before that can't or don't. */
  #nextCall(group: Iterable<Item>): Item[] {
    const { mostPerCall = 1, sizeOf, isAvailable, isWanted, onNotAsked } = this.parts;
    const call: Item[] = [];
    let size = 0;
    for (const item of group) {
      if (isAvailable?.(item) === false) {
        this.#removeDue(item);
        this.addLater([item]);
        onNotAsked?.(item);
      } else if (isWanted?.(item) === false) {
        this.#removeDue(item);
        this.#retried.delete(item);
      } else {
        size += sizeOf?.(item) ?? 1;
        if (size > mostPerCall) break;
        call.push(item);
      }
    }
    return call;
  }

  #countOf(call: readonly Item[]): number {
    return this.parts.underWayCounts === 'items' ? call.length : 1;
  }

  async #call(items: readonly Item[]): Promise<void> {
    const [first, ...others] = items;
    if (!first) return;
    this.#calls += 1;
    this.#underWay += this.#countOf(items);
    try {
      await this.parts.call([first, ...others]);
    } finally {
      this.#calls -= 1;
      this.#underWay -= this.#countOf(items);
      for (const item of items) this.#retried.delete(item);
      // Items that are added in one tick go together.
      if (!this.#isTickDue) this.#send();
    }
  }

  #retryLater(failure: unknown): void {
    if (this.#cancelRetry || this.#failed.size === 0) return;
    this.#failures += 1;
    if (this.#failures === 1 && failure !== undefined) this.parts.onFirstFailure?.(failure);
    const delay = backoffMillis(this.#failures, FIRST_RETRY_MILLIS);
    this.#cancelRetry = this.parts.clock.after(delay, () => this.retry());
  }

  #endRetry(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #changed(): void {
    if (this.#failed.size + this.#retried.size === 0) this.#failures = 0;
    const undone = this.#due.size + this.#failed.size;
    if (undone !== this.#told) this.parts.onUndone?.(undone);
    this.#told = undone;
    if (this.#isIdle) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
