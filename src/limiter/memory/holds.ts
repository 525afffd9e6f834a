import type { HeldApproval } from '../holdings.js';
import { countsList, type Limit } from '../limits.js';
import type { QueueList } from '../queue-order.js';
import { type Held, HeldByLane } from './held-by-lane.js';
import { type MemoryBudget, UNBOUNDED_BUDGET } from './memory-budget.js';
import { Moments } from './moments.js';
import type { Terms } from './terms.js';

/** What a hold takes, measured. */
const BYTES_PER_HOLD = 400;
/** What it takes besides if it has a holder, at most: a text of 64 bytes. */
const BYTES_PER_HOLDER = 100;
const NOTHING: Held = { hits: 0, size: 0 };
/** How many moments of holds that were released or renewed may be left, besides one for each hold. */
const MOST_OUTDATED = 100;

interface Hold {
  readonly hits: number;
  /** Its length. */
  readonly millis: number;
  readonly lapsesAt: number;
  readonly holding: Holding | undefined;
  /** Of its check. */
  readonly list: QueueList | undefined;
  readonly claim: HoldClaim;
}

/** The holder of an approval that its check has named, and since when it holds. */
interface Holding {
  readonly holder: string;
  readonly since: number;
}

/**
 * Whether the caller has got the approval. An unclaimed one is kept for the caller, and its hold ends (`plain`) or another
 * begins (`held`) when it is claimed. One that will be plain does not count in the most holds.
 */
export type HoldClaim = 'claimed' | 'unclaimed plain' | 'unclaimed held';

/** The changes of a hold. An undefined one changes nothing. */
interface HoldChanges {
  readonly hits?: number | undefined;
  readonly millis?: number | undefined;
  /** The longest hold that is renewed. */
  readonly maxMillis?: number | undefined;
}

/** The approvals of a key that are held. `lua/lib/holds.lua` has the same rules. Times are milliseconds of a clock. */
export class Holds {
  readonly #holds = new Map<string, Hold>();
  /** Has a moment for each time that a hold was taken or renewed, so that few holds are looked at to find the next. */
  readonly #order = new Moments();
  #hits = 0;
  /** Undefined until there is a hold in a lane. */
  #byLane: HeldByLane | undefined;
  #unclaimed = 0;
  #unclaimedPlain = 0;
  #firstLapse = Infinity;
  /** The unclaimed ones that have lapsed since they were taken last. */
  #lapsedUnclaimed: string[] | undefined;

  constructor(
    private readonly max: number,
    private readonly budget: MemoryBudget,
  ) {}

  /** The hits of all held approvals. */
  get hits(): number {
    return this.#hits;
  }

  /** How many approvals are held. */
  get size(): number {
    return this.#holds.size;
  }

  /** The held approvals that a limit counts. @param lanes of the limit */
  countedIn(lanes: Limit['lanes']): Held {
    return lanes ? (this.#byLane?.of(lanes) ?? NOTHING) : this;
  }

  /** How many are unclaimed, and will be held no more once they are claimed. */
  get unclaimedPlain(): number {
    return this.#unclaimedPlain;
  }

  get isFull(): boolean {
    return this.#holds.size - this.#unclaimedPlain >= this.max;
  }

  /** No hold lapses before this time. */
  get firstLapse(): number {
    return this.#firstLapse;
  }

  /** Whether any approval is kept for a caller who has not got it. It is given back when it lapses. */
  get hasUnclaimed(): boolean {
    return this.#unclaimed > 0;
  }

  /** Returns a copy to which holds may be added, and in which they may end. */
  copy(): Holds {
    const copy = new Holds(this.max, UNBOUNDED_BUDGET);
    for (const [id, hold] of this.#holds) copy.#put(id, hold);
    copy.#firstLapse = this.#firstLapse;
    return copy;
  }

  /**
   * Holds an approval, unless it is held already.
   * @param millis how long
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(
    now: number,
    id: string,
    { hits = 1, holder, list }: Terms,
    millis: number,
    claim: HoldClaim,
  ): boolean {
    if (this.#holds.has(id)) return true;
    const holding = holder === undefined ? undefined : { holder: copyOf(holder), since: now };
    const hold = { hits, millis, lapsesAt: now + millis, holding, list, claim };
    if (!this.budget.take(bytesOf(hold))) return false;
    this.#put(id, hold);
    return true;
  }

  /** The holds that have not lapsed. */
  *held(now: number): Iterable<HeldApproval> {
    for (const [requestId, { hits, lapsesAt, holding }] of this.#holds) {
      if (lapsesAt <= now) continue;
      yield {
        requestId,
        holder: holding?.holder,
        heldMillis: holding && now - holding.since,
        lapseMillis: lapsesAt - now,
        hits,
      };
    }
  }

  isUnclaimed(id: string): boolean {
    const hold = this.#holds.get(id);
    return hold !== undefined && hold.claim !== 'claimed';
  }

  /** The caller has got an unclaimed approval, which is held for this long from now on. */
  claim(now: number, id: string, millis: number): void {
    const hold = this.#holds.get(id);
    if (!hold) return;
    this.#count(hold, -1);
    this.#put(id, { ...hold, millis, lapsesAt: now + millis, claim: 'claimed' });
  }

  /** Returns the ids of the unclaimed approvals that have lapsed since the last call. */
  takeLapsedUnclaimed(): readonly string[] | undefined {
    const lapsed = this.#lapsedUnclaimed;
    this.#lapsedUnclaimed = undefined;
    return lapsed;
  }

  release(id: string): boolean {
    const hold = this.#holds.get(id);
    if (!hold) return false;
    this.#remove(id, hold);
    return true;
  }

  /** The hits of a hold; undefined if there is no such hold. */
  hitsOf(id: string): number | undefined {
    return this.#holds.get(id)?.hits;
  }

  /** The list of the check of a hold. */
  listOf(id: string): QueueList | undefined {
    return this.#holds.get(id)?.list;
  }

  /** When a hold lapses; undefined if there is no such hold. */
  lapseOf(id: string): number | undefined {
    return this.#holds.get(id)?.lapsesAt;
  }

  /**
   * Changes a hold, and renews it. If it is longer than `maxMillis`, it is not renewed, and only its hits change.
   * @returns until it lapses; undefined if there is no such hold; `too_long` if there is nothing to change
   */
  renew(now: number, id: string, changes: HoldChanges): number | 'too_long' | undefined {
    const hold = this.#holds.get(id);
    if (!hold) return undefined;
    const { hits = hold.hits, millis = hold.millis, maxMillis = Infinity } = changes;
    const isRenewed = millis <= maxMillis;
    if (!isRenewed && changes.hits === undefined) return 'too_long';
    const lapsesAt = isRenewed ? now + millis : hold.lapsesAt;
    this.#count(hold, -1);
    this.#put(id, { ...hold, hits, millis: isRenewed ? millis : hold.millis, lapsesAt });
    return lapsesAt - now;
  }

  /** Ends the holds that have lapsed. @returns when the last of these lapsed; undefined if there is none */
  endLapsed(now: number): number | undefined {
    if (now < this.#firstLapse) return undefined;
    let last: number | undefined;
    for (let next = this.#order.first; next && next.at <= now; next = this.#order.first) {
      this.#order.removeFirst();
      const hold = this.#holds.get(next.id);
      if (hold?.lapsesAt !== next.at) continue;
      this.#remove(next.id, hold);
      if (hold.claim !== 'claimed') (this.#lapsedUnclaimed ??= []).push(next.id);
      last = next.at;
    }
    this.#firstLapse = this.#firstOfOrder();
    return last;
  }

  /** The holds that have not lapsed; undefined if there are none. @param lanes only those that a limit of these counts */
  heldAt(now: number, lanes?: Limit['lanes']): Held | undefined {
    let { hits, size } = this.countedIn(lanes);
    const lapsed = new Set<Hold>();
    this.#order.visitUntil(now, ({ id, at }) => {
      const hold = this.#holds.get(id);
      if (hold?.lapsesAt !== at || lapsed.has(hold) || !countsList({ lanes }, hold.list)) return;
      lapsed.add(hold);
      hits -= hold.hits;
      size -= 1;
    });
    return size === 0 ? undefined : { hits, size };
  }

  /** The ids of the unclaimed approvals that have lapsed, and are still here. */
  unclaimedLapsedBy(now: number): ReadonlySet<string> {
    const ids = new Set<string>();
    this.#order.visitUntil(now, ({ id, at }) => {
      const hold = this.#holds.get(id);
      if (hold?.lapsesAt === at && hold.claim !== 'claimed') ids.add(id);
    });
    return ids;
  }

  /** Removes all, and gives their memory back. */
  clear(): void {
    for (const [id, hold] of this.#holds) this.#remove(id, hold);
  }

  #put(id: string, hold: Hold): void {
    this.#holds.set(id, hold);
    this.#count(hold, 1);
    this.#firstLapse = Math.min(this.#firstLapse, hold.lapsesAt);
    this.#order.add({ id, at: hold.lapsesAt });
    if (this.#order.size > MOST_OUTDATED + 2 * this.#holds.size) {
      this.#order.clear();
      for (const [each, { lapsesAt: at }] of this.#holds) this.#order.add({ id: each, at });
    }
  }

  /** When the first hold lapses. Passes over what the order has of holds that were released or renewed. */
  #firstOfOrder(): number {
    for (let next = this.#order.first; next; next = this.#order.first) {
      if (this.#holds.get(next.id)?.lapsesAt === next.at) return next.at;
      this.#order.removeFirst();
    }
    return Infinity;
  }

  /** @param sign 1 if it is held from now on, -1 if it is not */
  #count({ hits, list, claim }: Hold, sign: 1 | -1): void {
    this.#hits += sign * hits;
    if (claim !== 'claimed') this.#unclaimed += sign;
    if (claim === 'unclaimed plain') this.#unclaimedPlain += sign;
    if (list?.kind !== 'lane') return;
    this.#byLane ??= new HeldByLane();
    this.#byLane.add(list.name, sign * hits, sign);
  }

  #remove(id: string, hold: Hold): void {
    this.#holds.delete(id);
    this.#count(hold, -1);
    this.budget.giveBack(bytesOf(hold));
    if (this.#holds.size > 0) return;
    this.#firstLapse = Infinity;
    this.#order.clear();
  }
}

function bytesOf({ holding }: Hold): number {
  return BYTES_PER_HOLD + (holding ? BYTES_PER_HOLDER : 0);
}

/** A text that is a part of a URL keeps the whole URL in memory. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}
