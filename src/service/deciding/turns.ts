import type { Ticks } from '../../common/ticks.js';

/** About the time that all costly requests together take of a tick. Other requests are served between ticks. */
const MILLIS_PER_TICK = 1;
/**
 * How many elements are dealt with between two looks at the clock. Most take a few microseconds. A key that is matched
 * for the first time takes as long as its rules do.
 */
const ELEMENTS_PER_GRANT = 4;

/** The most elements of a request in one turn, if they are fast. Most requests have fewer, and need one turn. */
const ELEMENTS_PER_TURN = 64;

/** A request that takes turns. */
export interface TurnTaker {
  /** The name of its caller, or what stands for one. */
  readonly owner: string;
}

/** The last turn so far. */
interface Turn {
  readonly request: TurnTaker;
  elements: number;
  /** Before the current grant. */
  millis: number;
  /** When the current grant began. */
  grantedAt: number;
}

interface Waiting {
  readonly request: TurnTaker;
  readonly wanted: number;
  readonly go: (granted: number) => void;
}

/**
 * Shares the ticks of the event loop among bulk requests, until the time of the tick is used up: owners take turns, and so
 * do the requests of each. A request goes on for some elements, or for the time of a tick if its elements are slow. So a bulk request of a thousand elements does not
 * delay other requests, whatever its elements cost. And most are dealt with one after the other: if all went on together,
 * each would take as long as all of them, and what belongs to it would outlive several garbage collections.
 */
export class Turns {
  /** By their owners, in the order of the next turns of these. */
  readonly #waiting = new Map<string, Waiting[]>();
  /** The request whose turn goes on. */
  #goingOn: Waiting | undefined;
  #isServing = false;
  /** When the time of this tick is used up; undefined while it is untouched. */
  #end: number | undefined;
  #last: Turn | undefined;

  /** @param now in milliseconds */
  constructor(
    private readonly ticks: Ticks,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Resolves when it is the request's turn, at once if no other request waits. An element may be any small piece of work.
   * @returns how many of the elements are to be dealt with now, at once. The request asks again for more.
   */
  next(request: TurnTaker, wanted: number): Promise<number> {
    return new Promise((go) => {
      const waiting = { request, wanted, go };
      if (this.#isServing) this.#addMillis();
      if (this.#goesOn(request)) this.#goingOn = waiting;
      else this.#wait(waiting);
      if (!this.#isServing) void this.#serve();
    });
  }

  /** Whether the request has the last turn, and that turn is not over. */
  #goesOn(request: TurnTaker): boolean {
    const last = this.#last;
    if (last?.request !== request || last.elements >= ELEMENTS_PER_TURN) return false;
    return last.millis < MILLIS_PER_TICK;
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    while ((this.#goingOn ?? this.#waiting.size > 0) && this.#hasTime()) {
      const next = this.#goingOn ?? this.#nextWaiting();
      if (!next) break;
      this.#goingOn = undefined;
      if (!this.#goesOn(next.request)) {
        this.#last = { request: next.request, elements: 0, millis: 0, grantedAt: 0 };
      }
      this.#grant(next);
      // After the request's work, which takes time and may ask for another turn.
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

  /** The longest waiting request of the owner whose last turn was first. */
  #nextWaiting(): Waiting | undefined {
    const [first] = this.#waiting;
    if (!first) return undefined;
    const [owner, requests] = first;
    const next = requests.shift();
    this.#waiting.delete(owner);
    if (requests.length > 0) this.#waiting.set(owner, requests);
    return next;
  }

  #grant({ wanted, go }: Waiting): void {
    const granted = Math.min(wanted, ELEMENTS_PER_GRANT);
    if (this.#last) {
      this.#last.elements += granted;
      this.#last.grantedAt = this.now();
    }
    go(granted);
  }

  /** Adds the time of a grant to its turn. */
  #addMillis(): void {
    if (!this.#last) return;
    const now = this.now();
    this.#last.millis += now - this.#last.grantedAt;
    this.#last.grantedAt = now;
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
