import type { RequestStatus } from '../../limiter/limiter.js';
import type { KeyNames } from '../shared/key-names.js';
import { BatchedCalls, type CallsParts } from './batched-calls.js';
import type { WaitingStore } from '../scripts/scripts.js';

/** The most requests of one call. */
const MAX_REQUESTS_PER_CALL = 100;
/** More would pile up while Redis stalls. */
const MAX_CALLS_UNDER_WAY = 16;

interface Question {
  readonly names: KeyNames;
  readonly requestId: string;
  readonly resolve: (status: RequestStatus | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Asks Redis what requests are: many waits may end at the same moment. Requests of one key share their calls. */
export class StatusCalls extends BatchedCalls<Question> {
  constructor({
    clock,
    ticks,
    store,
  }: Pick<CallsParts, 'clock' | 'ticks'> & { readonly store: Pick<WaitingStore, 'statuses'> }) {
    super({
      clock,
      ticks,
      groupOf: ({ names }) => names.state,
      mostPerCall: MAX_REQUESTS_PER_CALL,
      mostUnderWay: MAX_CALLS_UNDER_WAY,
      call: async (questions) => {
        try {
          const ids = questions.map(({ requestId }) => requestId);
          const statuses = await store.statuses(questions[0].names, ids);
          for (const [i, { resolve }] of questions.entries()) resolve(statuses[i]);
        } catch (error) {
          for (const { reject } of questions) reject(error);
        }
      },
    });
  }

  /** @returns undefined if the request is unknown, or over. Rejects if Redis does not answer */
  statusOf(names: KeyNames, requestId: string): Promise<RequestStatus | undefined> {
    return new Promise((resolve, reject) => this.add([{ names, requestId, resolve, reject }]));
  }
}
