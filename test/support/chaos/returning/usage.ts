import { capacityOf } from '../../../../src/limiter/limits.js';
import { CREDIT_MILLIS } from '../checks/spans.js';
import { type ReturningKey, WINDOW_MILLIS } from './keys.js';

/** The clock of MONITOR reads up to this much later than the script, which decides by whole milliseconds. */
const CLOCK_MILLIS = 1;

/** What the approvals of a key take, as an independent account. Times are milliseconds since 1970. */
export interface Usage {
  /** How much may count at once. */
  readonly capacity: number;
  /** The key's window began. */
  beginWindow(start: number): void;
  /** @param heldUntil if it is held */
  approve(id: string, hits: number, at: number, heldUntil?: number): void;
  /** A grant is plain, or held until then, from now on. */
  confirm(id: string, hits: number, at: number, heldUntil?: number): void;
  giveBack(id: string, at: number): void;
  /** Returns the least that counts. */
  usedAt(at: number): number;
}

export function usageOf(key: ReturningKey): Usage {
  switch (key.algorithm.name) {
    case 'fixed_window':
      return new FixedUsage(key.maximum);
    case 'sliding_window':
      return new SlidingUsage(key.maximum);
    case 'token_bucket':
      return new BucketUsage(capacityOf(key), key.maximum / WINDOW_MILLIS);
  }
}

interface Approval {
  readonly hits: number;
  readonly at: number;
  readonly heldUntil: number | undefined;
}

/** Of windows. Held approvals count besides them. */
abstract class WindowUsage implements Usage {
  protected readonly approvals = new Map<string, Approval>();

  constructor(readonly capacity: number) {}

  abstract beginWindow(start: number): void;

  /** Whether an approval that is not held counts. */
  protected abstract countsAt(approval: Approval, at: number): boolean;

  approve(id: string, hits: number, at: number, heldUntil?: number): void {
    this.approvals.set(id, { hits, at, heldUntil });
  }

  confirm(id: string, hits: number, at: number, heldUntil?: number): void {
    this.approve(id, hits, at, heldUntil);
  }

  giveBack(id: string): void {
    this.approvals.delete(id);
  }

  usedAt(at: number): number {
    let used = 0;
    for (const [id, approval] of this.approvals) {
      const { hits, heldUntil } = approval;
      const isHeld = heldUntil !== undefined && heldUntil > at + CLOCK_MILLIS;
      if (heldUntil === undefined ? this.countsAt(approval, at) : isHeld) used += hits;
      else this.approvals.delete(id);
    }
    return used;
  }
}

/** A script that decides in a window that has ended has to begin the next one first. */
class FixedUsage extends WindowUsage {
  #end = Infinity;

  beginWindow(start: number): void {
    for (const [id, { heldUntil }] of this.approvals) {
      if (heldUntil === undefined) this.approvals.delete(id);
    }
    this.#end = start + WINDOW_MILLIS;
  }

  protected countsAt(_approval: Approval, at: number): boolean {
    return at < this.#end + CLOCK_MILLIS;
  }
}

class SlidingUsage extends WindowUsage {
  beginWindow(): void {
    // It has no windows that end together.
  }

  protected countsAt(approval: Approval, at: number): boolean {
    return approval.at > at - WINDOW_MILLIS + CLOCK_MILLIS;
  }
}

/** Of a bucket, which limits starts: it takes each approval once, when it is given. */
class BucketUsage implements Usage {
  readonly #taken = new Map<string, { readonly hits: number; readonly at: number }>();
  #level = 0;
  #time = 0;

  constructor(
    readonly capacity: number,
    private readonly perMilli: number,
  ) {}

  beginWindow(): void {
    // The windows of a bucket's key end nothing.
  }

  approve(id: string, hits: number, at: number): void {
    this.#level = this.usedAt(at) + hits;
    this.#taken.set(id, { hits, at });
  }

  confirm(): void {
    // It has counted since the grant.
  }

  /** What has drained of it since can't be given back. */
  giveBack(id: string, at: number): void {
    const taken = this.#taken.get(id);
    if (!taken) return;
    const left = taken.hits - this.perMilli * (at - taken.at);
    this.#level = this.usedAt(at) - Math.max(0, left);
    this.#taken.delete(id);
  }

  usedAt(at: number): number {
    const lowest = -this.perMilli * (CREDIT_MILLIS + CLOCK_MILLIS);
    this.#level = Math.max(lowest, this.#level - this.perMilli * Math.max(0, at - this.#time));
    this.#time = Math.max(this.#time, at);
    return this.#level;
  }
}
