import { setImmediate } from 'node:timers';

import { resultsOf } from './answers.js';
import type { Answer } from './exchange.js';
import type { PendingRequest } from './pending-request.js';

/** Sluice rejects bulk requests with more elements. */
const MOST_IN_A_CALL = 1000;
/** Sluice rejects bodies of more than 1 MiB. A character takes up to three bytes. */
const LONGEST_BODY = (1024 * 1024) / 3;

interface Passenger<Element, Result, Value> {
  readonly request: PendingRequest<Element, Result, Value>;
  /** Its element as JSON. Each is serialized separately, so that a failure affects no other element. */
  readonly text: string;
}

/**
 * Sends the checks or releases of a tick of the event loop in one bulk request. While `maxCalls` bulk requests are in
 * flight, new elements wait for one to end, and are then sent together: the busier Sluice is, the more elements share a
 * request.
 */
export class Batcher<Element, Result, Value> {
  #line: Passenger<Element, Result, Value>[] = [];
  #underWay = 0;
  #departureIsDue = false;

  /**
   * @param call sends a body, with a time limit. It throws a SluiceError if there is no answer by then, and passes a late
   *     one to `onLate`
   */
  constructor(
    private readonly maxCalls: number,
    private readonly call: (
      body: string,
      timeoutMillis: number,
      onLate: (answer: Answer) => void,
    ) => Promise<Answer>,
  ) {}

  add(request: PendingRequest<Element, Result, Value>): void {
    this.#line.push({ request, text: JSON.stringify(request.element) });
    this.#departSoon();
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

  async #send(passengers: readonly Passenger<Element, Result, Value>[]): Promise<void> {
    this.#underWay += 1;
    let timeoutMillis = 0;
    for (const { request } of passengers) {
      request.isSent = true;
      timeoutMillis = Math.max(timeoutMillis, request.timeoutMillis);
    }
    const failed = (error: unknown): void => {
      for (const { request } of passengers) request.failed(error);
    };
    const answered = (answer: Answer): void => {
      try {
        const results = resultsOf(answer, passengers.length) as readonly Result[];
        for (const [i, result] of results.entries()) passengers[i]?.request.answered(result);
      } catch (error) {
        failed(error);
      }
    };
    try {
      const body = `[${passengers.map(({ text }) => text).join()}]`;
      answered(await this.call(body, timeoutMillis, answered));
    } catch (error) {
      failed(error);
    } finally {
      this.#underWay -= 1;
      this.#departSoon();
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
