import type { Ticks } from '../../common/ticks.js';
import type { ConnectedRequest } from '../request-context.js';

/** About the time that all costly requests together take of a tick. Other requests are served between ticks. */
const MILLIS_PER_TICK = 1;
/**
 * How many elements are dealt with between two looks at the clock. Most take a few microseconds. A key that is matched
 * for the first time takes as long as its rules do.
 */
const ELEMENTS_PER_SLICE = 4;

/** The most elements of a request in slices without another request between them. Most requests have fewer. */
const ELEMENTS_IN_A_ROW = 64;

/** A request that takes slices of the event loop. */
export type SliceTaker = Pick<ConnectedRequest, 'owner'>;

/** The slices of the request that has had the last one, since those of another request. */
interface Row {
  readonly request: SliceTaker;
  elements: number;
  /** Before the current slice. */
  millis: number;
  /** When the current slice began. */
  begunAt: number;
}

interface Waiting {
  readonly request: SliceTaker;
  readonly wanted: number;
  readonly go: (elements: number) => void;
}

/**
 * Shares the ticks of the event loop among bulk requests in slices, until the time of the tick is used up. The owners are
 * served one after the other, as are the requests of each. A request gets slices in a row for some elements, or for the
 * time of a tick if its elements are slow. So a bulk request of a thousand elements does not delay other requests,
 * whatever its elements cost. And most are dealt with one after the other: if all went on together, each would take as
 * long as all of them, and what belongs to it would outlive several garbage collections.
 */
export class Slices {
  /** By their owners, in the order in which these get their next slices. */
  readonly #waiting = new Map<string, Waiting[]>();
  /** The request that gets another slice in a row. */
  #goingOn: Waiting | undefined;
  #isServing = false;
  /** When the time of this tick is used up; undefined while it is untouched. */
  #end: number | undefined;
  #last: Row | undefined;

  /** @param now in milliseconds */
  constructor(
    private readonly ticks: Ticks,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Resolves when the request's next slice begins, at once if no other request waits. An element may be any small piece of
   * work.
   * @returns how many of the elements are to be dealt with now, at once. The request asks again for more.
   */
  next(request: SliceTaker, wanted: number): Promise<number> {
    return new Promise((go) => {
      const waiting = { request, wanted, go };
      if (this.#isServing) this.#addMillis();
      if (this.#goesOn(request)) this.#goingOn = waiting;
      else this.#wait(waiting);
      if (!this.#isServing) void this.#serve();
    });
  }

  /** Whether the request has had the last slice, and may have another in a row. */
  #goesOn(request: SliceTaker): boolean {
    const last = this.#last;
    if (last?.request !== request || last.elements >= ELEMENTS_IN_A_ROW) return false;
    return last.millis < MILLIS_PER_TICK;
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    while ((this.#goingOn ?? this.#waiting.size > 0) && this.#hasTime()) {
      const next = this.#goingOn ?? this.#nextWaiting();
      if (!next) break;
      this.#goingOn = undefined;
      if (!this.#goesOn(next.request)) {
        this.#last = { request: next.request, elements: 0, millis: 0, begunAt: 0 };
      }
      this.#begin(next);
      // After the request's work, which takes time and may ask for another slice.
      await Promise.resolve();
      this.#addMillis();
    }
    this.#isServing = false;
  }

  #wait(waiting: Waiting): void {
    const { owner } = waiting.request;
    const others = this.#waiting.get(owner);
    if (others) others.push(waiting);
    else this.#waiting.set(owner, [waiting]);
  }

  /** The longest waiting request of the owner whose last slice was first. */
  #nextWaiting(): Waiting | undefined {
    const [first] = this.#waiting;
    if (!first) return undefined;
    const [owner, requests] = first;
    const next = requests.shift();
    this.#waiting.delete(owner);
    if (requests.length > 0) this.#waiting.set(owner, requests);
    return next;
  }

  #begin({ wanted, go }: Waiting): void {
    const elements = Math.min(wanted, ELEMENTS_PER_SLICE);
    if (this.#last) {
      this.#last.elements += elements;
      this.#last.begunAt = this.now();
    }
    go(elements);
  }

  /** Adds the time of a slice to its row. */
  #addMillis(): void {
    if (!this.#last) return;
    const now = this.now();
    this.#last.millis += now - this.#last.begunAt;
    this.#last.begunAt = now;
  }

  #hasTime(): boolean {
    if (this.#end !== undefined) return this.now() < this.#end;
    this.#end = this.now() + MILLIS_PER_TICK;
    this.ticks.next(() => {
      this.#end = undefined;
      void this.#serve();
    });
    return true;
  }
}

/** How long a request works before it asks for its next slice. */
const SLICE_MILLIS = 0.25;

/**
 * Does `work` for each of many items, in slices between those of other costly requests: an item may be a key that is
 * matched for the first time.
 */
export async function inSlices<T>(
  items: Iterable<T>,
  slices: Pick<Slices, 'next'>,
  taker: SliceTaker,
  work: (item: T) => void,
): Promise<void> {
  let end = -Infinity;
  for (const item of items) {
    if (performance.now() >= end) {
      await slices.next(taker, 1);
      end = performance.now() + SLICE_MILLIS;
    }
    work(item);
  }
}
