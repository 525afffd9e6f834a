import { performance } from 'node:perf_hooks';

import type { Decision } from '../decision.js';
import { SluiceError } from '../errors.js';
import { decisionIn } from './answers.js';
import { type Keeping, KeptWait, type Wait } from './kept-wait.js';
import type { PendingRequest } from './pending-request.js';
import { checkCall } from './service.js';

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
  /** The longest time for which Sluice keeps a place, as it has said, in ms. */
  #longestMillis = Infinity;
  #believedUntil = 0;

  constructor(
    private readonly keepMillis: number,
    private readonly keeping: Keeping,
  ) {}

  async send(wait: Wait, request: PendingRequest<Decision>): Promise<Decision> {
    const isBelieved = performance.now() < this.#believedUntil;
    const longest = isBelieved ? this.#longestMillis : Infinity;
    const keepMillis = Math.min(this.keepMillis, longest);
    if (keepMillis === 0) {
      const call = checkCall(wait.element, { canWait: true });
      const { gone: signal } = request;
      return decisionIn(await this.keeping.service.send({ ...call, signal, isWithdrawn: true }));
    }
    const kept = new KeptWait(wait, request, keepMillis, this.keeping);
    try {
      return await kept.decision();
    } catch (error) {
      const longestMillis = request.isOver ? undefined : longestKept(error);
      if (longestMillis === undefined || longestMillis >= keepMillis) {
        // It was sent again as often as it may be.
        request.leave(error);
        throw error;
      }
      this.#longestMillis = longestMillis;
      this.#believedUntil = performance.now() + BELIEVED_MILLIS;
      kept.leave();
      return this.send(wait, request);
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
