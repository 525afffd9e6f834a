import type { HeldApproval } from '../holdings.js';
import type { Amendment } from '../limiter.js';
import type { Limit } from '../limits.js';
import { isHeld, LABELS, labelsOf, type RequestState, type RequestTerms } from '../request.js';
import { type MemoryBudget, UNBOUNDED_BUDGET } from './memory-budget.js';
import { Heap, type HeapItem } from './heap.js';
import { groupIn, stoppedGroup } from './queue/waiting-list.js';

/** What a hold takes, measured. */
const BYTES_PER_HOLD = 400;
/** What it takes besides if it has labels, at most: a text of 64 bytes. */
const BYTES_PER_LABELS = 100;
const NOTHING: Held = { hits: 0, size: 0 };

/** The state of an approval that is held. An unclaimed one is kept for its caller, and will be as its caller has asked. */
export type HeldState = Extract<RequestState, 'held' | 'unclaimed'>;

interface Hold extends HeapItem {
  readonly id: string;
  state: HeldState;
  /** With the hits and the hold that it has now. */
  request: RequestTerms;
  readonly since: number;
  lapsesAt: number;
}

/** Held approvals: their hits, and how many they are. */
export interface Held {
  readonly hits: number;
  readonly size: number;
}

/** What holds have to tell their key. */
export interface KeyOfHolds {
  /** The holds in a group are about to change, or have. */
  readonly noteHeld: (group: string, hasChanged: boolean) => void;
}

/** The approvals of a key that are held. `lua/lib/holds.lua` has the same rules. Times are milliseconds of a clock. */
export class Holds {
  readonly #holds = new Map<string, Hold>();
  readonly #order = new Heap<Hold>((one, other) => one.lapsesAt < other.lapsesAt);
  #hits = 0;
  /** What is held in each lane or group, by its name as in `Stopped`. Undefined until there is a hold in one. */
  #ofLists: Map<string, Held> | undefined;
  #unclaimed = 0;
  #unclaimedNotHeld = 0;
  #firstLapse = Infinity;
  /** The unclaimed ones that have lapsed since they were taken last. */
  #lapsedUnclaimed: string[] | undefined;

  constructor(
    private readonly max: number,
    private readonly budget: MemoryBudget,
    private key?: KeyOfHolds,
  ) {}

  /** The hits of all held approvals. */
  get hits(): number {
    return this.#hits;
  }

  /** How many approvals are held. */
  get size(): number {
    return this.#holds.size;
  }

  /** The held approvals that a limit counts. */
  countedIn({ lanes, group }: Pick<Limit, 'lanes' | 'group'>): Held {
    if (group !== undefined) return this.#ofLists?.get(stoppedGroup(group)) ?? NOTHING;
    if (!lanes) return this;
    return lanes
      .map((lane) => this.#ofLists?.get(lane) ?? NOTHING)
      .reduce((sum, { hits, size }) => ({ hits: sum.hits + hits, size: sum.size + size }), NOTHING);
  }

  /** The names of the groups that hold any. */
  get groups(): readonly string[] {
    const all = [...(this.#ofLists?.keys() ?? [])];
    return all.flatMap((list) => groupIn(list) ?? []);
  }

  /** How many are unclaimed, and will be held no more once they are claimed. */
  get unclaimedNotHeld(): number {
    return this.#unclaimedNotHeld;
  }

  get isFull(): boolean {
    return this.#holds.size - this.#unclaimedNotHeld >= this.max;
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
  copy(key: KeyOfHolds): Holds {
    const copy = new Holds(this.max, UNBOUNDED_BUDGET);
    for (const hold of this.#order.all) copy.#put({ ...hold });
    copy.key = key;
    copy.#firstLapse = this.#firstLapse;
    return copy;
  }

  /** Whether none lapses by then. */
  areCurrentAt(now: number): boolean {
    return now < this.#firstLapse;
  }

  /**
   * Holds an approval, unless it is held already.
   * @param request its terms, which it keeps. An unclaimed approval is held for its `keepMillis`.
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(now: number, id: string, request: RequestTerms, state: HeldState): boolean {
    if (this.#holds.has(id)) return true;
    const { holdMillis = 0, keepMillis = 0 } = request;
    const lapsesAt = now + (state === 'held' ? holdMillis : keepMillis);
    if (!this.budget.take(bytesOf(request))) return false;
    this.#put({ id, state, request, since: now, lapsesAt, index: 0 });
    return true;
  }

  /** The holds that have not lapsed. */
  *held(now: number): Iterable<HeldApproval> {
    for (const { id: requestId, request, since, lapsesAt } of this.#holds.values()) {
      if (lapsesAt <= now) continue;
      yield {
        requestId,
        ...labelsOf(request),
        heldMillis: hasLabel(request) ? now - since : undefined,
        lapseMillis: lapsesAt - now,
        hits: hitsOf(request),
      };
    }
  }

  /** The caller has got an unclaimed approval, which is held from now on. */
  claim(now: number, id: string): void {
    const hold = this.#holds.get(id);
    if (!hold) return;
    const { holdMillis = 0 } = hold.request;
    this.#change(hold, { state: 'held', lapsesAt: now + holdMillis });
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
    this.#remove(hold);
    return true;
  }

  /** Returns the hold of an approval; undefined if there is none. */
  get(id: string): Readonly<Hold> | undefined {
    return this.#holds.get(id);
  }

  /**
   * Changes a hold, and renews it. If it is longer than `maxHoldMillis`, it is not renewed, and only its hits change.
   * @returns until it lapses; undefined if there is no such hold; `too_long` if there is nothing to change
   */
  renew(
    now: number,
    id: string,
    { hits, holdMillis, maxHoldMillis = Infinity }: Amendment,
  ): number | 'too_long' | undefined {
    const hold = this.#holds.get(id);
    if (!hold) return undefined;
    const millis = holdMillis ?? hold.request.holdMillis ?? 0;
    const isRenewed = millis <= maxHoldMillis;
    if (!isRenewed && hits === undefined) return 'too_long';
    const request = {
      ...hold.request,
      ...(hits !== undefined && { hits }),
      ...(isRenewed && { holdMillis: millis }),
    };
    this.#change(hold, { request, ...(isRenewed && { lapsesAt: now + millis }) });
    return hold.lapsesAt - now;
  }

  /** Ends the holds that have lapsed. @returns when the last of these lapsed; undefined if there is none */
  endLapsed(now: number): number | undefined {
    if (now < this.#firstLapse) return undefined;
    let last: number | undefined;
    for (let hold = this.#order.first; hold && hold.lapsesAt <= now; hold = this.#order.first) {
      this.#remove(hold);
      if (hold.state === 'unclaimed') (this.#lapsedUnclaimed ??= []).push(hold.id);
      last = hold.lapsesAt;
    }
    this.#firstLapse = this.#order.first?.lapsesAt ?? Infinity;
    return last;
  }

  /** Whether any hold has not lapsed. */
  hasAnyAt(now: number): boolean {
    if (this.#firstLapse > now) return this.#holds.size > 0;
    for (const { lapsesAt } of this.#holds.values()) if (lapsesAt > now) return true;
    return false;
  }

  /** Removes all, and gives their memory back. */
  clear(): void {
    for (const hold of this.#holds.values()) this.#remove(hold);
  }

  #put(hold: Hold): void {
    this.#holds.set(hold.id, hold);
    this.#count(hold, 1);
    this.#order.add(hold);
    this.#noteLapse(hold);
  }

  #change(hold: Hold, changed: Partial<Pick<Hold, 'state' | 'request' | 'lapsesAt'>>): void {
    this.#count(hold, -1);
    Object.assign(hold, changed);
    this.#count(hold, 1);
    this.#order.update(hold);
    this.#noteLapse(hold);
  }

  #noteLapse({ lapsesAt }: Hold): void {
    const others = this.#holds.size === 1 ? Infinity : this.#firstLapse;
    this.#firstLapse = Math.min(others, lapsesAt);
  }

  /** @param sign 1 if it is held from now on, -1 if it is not */
  #count({ state, request }: Hold, sign: 1 | -1): void {
    const hits = sign * hitsOf(request);
    this.#hits += hits;
    if (state === 'unclaimed') this.#unclaimed += sign;
    // It does not count in the most holds.
    if (state === 'unclaimed' && !isHeld(request)) this.#unclaimedNotHeld += sign;
    const { list } = request;
    if (!list) return;
    if (list.kind === 'group') this.key?.noteHeld(list.name, false);
    this.#ofLists ??= new Map();
    const name = list.kind === 'lane' ? list.name : stoppedGroup(list.name);
    const before = this.#ofLists.get(name) ?? NOTHING;
    const size = before.size + sign;
    if (size > 0) this.#ofLists.set(name, { hits: before.hits + hits, size });
    else this.#ofLists.delete(name);
    if (list.kind === 'group') this.key?.noteHeld(list.name, true);
  }

  #remove(hold: Hold): void {
    this.#holds.delete(hold.id);
    this.#order.remove(hold);
    this.#count(hold, -1);
    this.budget.giveBack(bytesOf(hold.request));
    if (this.#holds.size === 0) this.#firstLapse = Infinity;
  }
}

function bytesOf(request: RequestTerms): number {
  return BYTES_PER_HOLD + (hasLabel(request) ? BYTES_PER_LABELS : 0);
}

function hasLabel(request: RequestTerms): boolean {
  return LABELS.some((name) => request[name] !== undefined);
}

export function hitsOf({ hits = 1 }: RequestTerms): number {
  return hits;
}
