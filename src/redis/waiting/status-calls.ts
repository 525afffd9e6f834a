import { groupBy } from '../../common/group-by.js';
import type { Ticks } from '../../common/ticks.js';
import type { RequestStatus } from '../../limiter/limiter.js';
import type { KeyNames } from '../shared/key-names.js';
import { AtATime } from './at-a-time.js';
import type { WaitingStore } from './waiting-store.js';

/** The most requests of one call. Redis answers others between two calls. */
const MAX_REQUESTS_PER_CALL = 100;
/** More would pile up while Redis stalls. */
const MAX_CALLS_AT_A_TIME = 16;

interface Question {
  readonly names: KeyNames;
  readonly requestId: string;
  readonly resolve: (status: RequestStatus | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Asks Redis what requests are: many waits may end at the same moment. Requests of one key and one tick of the event loop
 * share their calls, of which few are under way at a time.
 */
export class StatusCalls {
  readonly #calls = new AtATime(MAX_CALLS_AT_A_TIME);
  #questions: Question[] = [];

  constructor(
    private readonly store: Pick<WaitingStore, 'statuses'>,
    private readonly ticks: Ticks,
  ) {}

  /** @returns undefined if the request is unknown, or over. Rejects if Redis does not answer */
  statusOf(names: KeyNames, requestId: string): Promise<RequestStatus | undefined> {
    return new Promise((resolve, reject) => {
      this.#questions.push({ names, requestId, resolve, reject });
      if (this.#questions.length > 1) return;
      this.ticks.next(() => {
        this.#send();
      });
    });
  }

  #send(): void {
    for (const ofKey of groupBy(this.#questions.splice(0), ({ names }) => names.state)) {
      for (let first = 0; first < ofKey.length; first += MAX_REQUESTS_PER_CALL) {
        const next = ofKey.slice(first, first + MAX_REQUESTS_PER_CALL);
        void this.#calls.run(() => this.#ask(next));
      }
    }
  }

  async #ask(questions: readonly Question[]): Promise<void> {
    const [first] = questions;
    if (!first) return;
    try {
      const ids = questions.map(({ requestId }) => requestId);
      const statuses = await this.store.statuses(first.names, ids);
      for (const [i, { resolve }] of questions.entries()) resolve(statuses[i]);
    } catch (error) {
      for (const { reject } of questions) reject(error);
    }
  }
}
