import { resultsOf } from './answers.js';
import type { Answer } from './exchange.js';
import type { PendingRequest } from './pending-request.js';

/** More are refused. */
const MOST_IN_A_CALL = 1000;

/**
 * Sends the requests of a tick of the event loop in one call. While `maxCalls` are under way, those that come wait
 * for one to end, and then go together: the busier Sluice is, the more share a call.
 */
export class Batcher<Element, Result, Value> {
  #line: PendingRequest<Element, Result, Value>[] = [];
  #underWay = 0;
  #departureIsDue = false;

  /** @param call sends a body, and gives up after so long; it throws a SluiceError where there is no answer */
  constructor(
    private readonly maxCalls: number,
    private readonly call: (body: string, timeoutMillis: number) => Promise<Answer>,
  ) {}

  add(request: PendingRequest<Element, Result, Value>): void {
    this.#line.push(request);
    this.#departSoon();
  }

  /** After the present tick, in which more may come. */
  #departSoon(): void {
    if (this.#departureIsDue || this.#underWay >= this.maxCalls) return;
    this.#departureIsDue = true;
    setImmediate(() => {
      this.#departureIsDue = false;
      while (this.#line.length > 0 && this.#underWay < this.maxCalls) {
        const requests = this.#line.splice(0, MOST_IN_A_CALL).filter(({ isOver }) => !isOver);
        if (requests.length > 0) void this.#send(requests);
      }
    });
  }

  async #send(requests: readonly PendingRequest<Element, Result, Value>[]): Promise<void> {
    this.#underWay += 1;
    let timeoutMillis = 0;
    for (const request of requests) {
      request.isSent = true;
      timeoutMillis = Math.max(timeoutMillis, request.timeoutMillis);
    }
    try {
      const body = JSON.stringify(requests.map(({ element }) => element));
      const answer = await this.call(body, timeoutMillis);
      const results = resultsOf(answer, requests.length) as readonly Result[];
      for (const [i, result] of results.entries()) requests[i]?.answered(result);
    } catch (error) {
      for (const request of requests) request.failed(error);
    } finally {
      this.#underWay -= 1;
      this.#departSoon();
    }
  }
}
