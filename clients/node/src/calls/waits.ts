import { performance } from 'node:perf_hooks';

import type { Decision } from '../decision.js';
import { SluiceError } from '../errors.js';
import type { RequestOptions } from '../options.js';
import { decisionIn } from './answers.js';
import type { Answer } from './exchange.js';
import { type Keeping, KeptWait, type Wait, type WaitRequest } from './kept-wait.js';
import { type Handling, PendingRequest } from './pending-request.js';
import type { Service } from './service.js';

interface WaitsParts extends Keeping {
  readonly service: Pick<Service, 'wait' | 'waitKept'>;
  readonly keepMillis: number;
}

/** The service of before does not know these parameters. */
const UNKNOWN = /^unknown parameter (?:keepMillis|requestId);/;
const TOO_LONG = /^keepMillis must be at most (\d+)/;
/** How long what Sluice has said about the longest time is believed: meanwhile its replicas may be updated. */
const BELIEVED_MILLIS = 600_000;

/**
 * The waits of a client. Each keeps its place in the queue over connections. If Sluice does not keep places, a wait is
 * one request.
 */
export class Waits {
  readonly #handling: Handling<Wait, Answer | Decision, Decision>;
  /** The longest time for which Sluice keeps a place, as it has said, in ms. */
  #longestMillis = Infinity;
  #believedUntil = 0;

  constructor(private readonly parts: WaitsParts) {
    this.#handling = {
      read: (said) => ('approved' in said ? said : decisionIn(said)),
      send: (request) => this.#send(request),
      // An approval that arrives after its caller has gone is released.
      late: ({ element }, decision) => {
        if (!decision.approved) return;
        void parts.release(element.key, decision.requestId).catch(() => undefined);
      },
      timeoutMillis: Infinity,
      // If the one that was lost is approved, nobody renews its hold, so that the approval ends with it.
      isRepeatable: ({ element }) => element.holdMillis !== undefined,
      retrying: parts.retrying,
    };
  }

  decisionOn(wait: Wait, options: RequestOptions): Promise<Decision> {
    return new PendingRequest(wait, this.#handling, options).value;
  }

  #send(request: WaitRequest): void {
    const isBelieved = performance.now() < this.#believedUntil;
    const { keepMillis: wanted, service } = this.parts;
    const keepMillis = isBelieved ? Math.min(wanted, this.#longestMillis) : wanted;
    if (keepMillis > 0) void this.#keep(request, keepMillis);
    else {
      const { element } = request.element;
      void sendAlone(request, (signal) => service.wait(element, signal));
    }
  }

  async #keep(request: WaitRequest, keepMillis: number): Promise<void> {
    const wait = new KeptWait(request, keepMillis, this.parts);
    request.onGone = () => wait.leave();
    try {
      request.answered(await wait.decision());
    } catch (error) {
      if (request.isOver) return;
      const longestMillis = longestKept(error);
      if (longestMillis === undefined || longestMillis >= keepMillis) {
        request.leave(error);
        return;
      }
      this.#longestMillis = longestMillis;
      this.#believedUntil = performance.now() + BELIEVED_MILLIS;
      wait.leave();
      this.#send(request);
    }
  }
}

/** The longest time for which Sluice keeps a place, in ms, if it has rejected a check for that. */
function longestKept(error: unknown): number | undefined {
  if (!(error instanceof SluiceError)) return undefined;
  if (UNKNOWN.test(error.message)) return 0;
  const [, longest] = TOO_LONG.exec(error.message) ?? [];
  return longest === undefined ? undefined : Number(longest);
}

type LoneRequest = Pick<
  PendingRequest<never, Answer, never>,
  'isSent' | 'onGone' | 'answered' | 'failed'
>;

/** Sends a request that shares its connection with no other. If its caller leaves, the connection is closed. */
export function sendAlone(
  request: LoneRequest,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<void> {
  const connection = new AbortController();
  request.onGone = () => connection.abort();
  return answerWith(request, send(connection.signal));
}

export async function answerWith(request: LoneRequest, answer: Promise<Answer>): Promise<void> {
  request.isSent = true;
  try {
    request.answered(await answer);
  } catch (error) {
    request.failed(error);
  }
}
