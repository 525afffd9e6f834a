import { clearTimeout, setImmediate } from 'node:timers';

import { resultsOf } from './answers.js';
import type { Answer } from './exchange.js';
import { type PendingRequest, setTimer } from './pending-request.js';

/** Sluice rejects bulk requests with more elements. */
const MOST_IN_A_CALL = 1000;
/** Sluice rejects bodies of more than 1 MiB. A character takes up to three bytes. */
const LONGEST_BODY = (1024 * 1024) / 3;

interface Passenger<Result> {
  readonly request: Pick<PendingRequest<unknown>, 'isOver' | 'isSent' | 'timeoutMillis'>;
  /** Its element as JSON. Each is serialized separately, so that a failure affects no other element. */
  readonly text: string;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends the checks or releases of a tick of the event loop in one bulk request. While `maxCalls` bulk requests are in
 * flight, new elements wait for one to end, and are then sent together: the busier Sluice is, the more elements share a
 * request.
 */
export class Batcher<Element, Result> {
  #line: Passenger<Result>[] = [];
  #underWay = 0;
  #departureIsDue = false;

  /** @param call sends a body. Its answer may still come after the time limit, but the next bulk request does not wait for it */
  constructor(
    private readonly maxCalls: number,
    private readonly call: (body: string, timeoutMillis: number) => Promise<Answer>,
  ) {}

  /** @returns the result of the element; never if its request is over before it is sent */
  add(element: Element, request: Passenger<Result>['request']): Promise<Result> {
    request.isSent = false;
    return new Promise((resolve, reject) => {
      this.#line.push({ request, text: JSON.stringify(element), resolve, reject });
      this.#departSoon();
    });
  }

  /** After the current tick, in which more may come. */
  #departSoon(): void {
    if (this.#departureIsDue || this.#line.length === 0) return;
    if (this.#underWay >= this.maxCalls) return;
    this.#departureIsDue = true;
    setImmediate(() => {
      this.#departureIsDue = false;
      this.#depart();
    });
  }

  #depart(): void {
    let waiting = this.#line.filter(({ request }) => !request.isOver);
    while (waiting.length > 0 && this.#underWay < this.maxCalls) {
      const count = seats(waiting);
      void this.#send(waiting.slice(0, count));
      waiting = waiting.slice(count);
    }
    this.#line = waiting;
  }

  async #send(passengers: readonly Passenger<Result>[]): Promise<void> {
    this.#underWay += 1;
    let timeoutMillis = 0;
    for (const { request } of passengers) {
      request.isSent = true;
      timeoutMillis = Math.max(timeoutMillis, request.timeoutMillis);
    }
    let timer: NodeJS.Timeout | undefined;
    const outOfTime = new Promise<void>((resolve) => {
      timer = setTimer(resolve, timeoutMillis);
    });
    await Promise.race([this.#distribute(passengers, timeoutMillis), outOfTime]);
    clearTimeout(timer);
    this.#underWay -= 1;
    this.#departSoon();
  }

  async #distribute(
    passengers: readonly Passenger<Result>[],
    timeoutMillis: number,
  ): Promise<void> {
    try {
      const body = `[${passengers.map(({ text }) => text).join()}]`;
      const answer = await this.call(body, timeoutMillis);
      const results = resultsOf(answer, passengers.length) as readonly Result[];
      for (const [i, result] of results.entries()) passengers[i]?.resolve(result);
    } catch (error) {
      for (const { reject } of passengers) reject(error);
    }
  }
}

/** How many of the first in the line fit in one request: at least one, or it would never be sent. */
function seats(line: readonly { readonly text: string }[]): number {
  let length = 0;
  const tooMany = line.findIndex(({ text }, i) => {
    length += text.length + 1;
    return i === MOST_IN_A_CALL || length > LONGEST_BODY;
  });
  return tooMany === -1 ? line.length : Math.max(1, tooMany);
}
