import { ratePath } from '../../http-client.js';
import type { Approvals } from './approvals.js';
import type { Asked, Caller, Told } from './caller.js';

/** An approval that a client holds. */
export interface Held {
  readonly key: string;
  readonly requestId: string;
}

interface Result {
  readonly status: number;
  readonly request_id?: string;
}

/** Bulk requests take no more elements. */
export const MOST_ELEMENTS = 1000;
const UNAVAILABLE = 503;

/** The requests of a cell's clients, all of which are entered into its account. */
export class Requests {
  /** The ids of approvals that may have been released: the answer was lost. */
  readonly #maybeReleased = new Set<string>();

  constructor(
    private readonly caller: Caller,
    private readonly approvals: Approvals,
  ) {}

  /** @returns the approval, if it was one */
  check(key: string): Promise<Held | undefined> {
    return this.#answered(key, this.caller.begin('POST', ratePath(key)));
  }

  /** A check that may wait, and what to call to leave. */
  wait(key: string): { readonly answer: Promise<Held | undefined>; leave(): void } {
    const asked = this.caller.begin('POST', `${ratePath(key)}?canWait=true`);
    let [isAnswered, hasLeft] = [false, false];
    const answered = async (): Promise<Held | undefined> => {
      try {
        return await this.#answered(key, asked);
      } catch (error) {
        if (!hasLeft) throw error;
        return undefined;
      } finally {
        isAnswered = true;
      }
    };
    return {
      answer: answered(),
      leave: () => {
        // The connection may be another request's by then.
        if (isAnswered) return;
        hasLeft = true;
        asked.leave();
      },
    };
  }

  /** @returns the approvals among them */
  async checkMany(keys: readonly string[], parameters: object = {}): Promise<Held[]> {
    const sentAt = Date.now();
    const elements = keys.map((key) => ({ ...checkOf(key), ...parameters }));
    const { answer } = this.caller.begin('POST', '/rate', elements);
    const results = resultsOf(await answer, keys.length);
    return results.flatMap((result, i) => this.#decided(keys[i]!, result, sentAt) ?? []);
  }

  /** Sends the same, and leaves as soon as the service has all of it. */
  async checkManyAndLeave(keys: readonly string[]): Promise<void> {
    const asked = this.caller.begin('POST', '/rate', keys.map(checkOf));
    for (const key of keys) this.approvals.undecided(key);
    await asked.sent;
    asked.leave();
  }

  /** Releases an approval. @returns whether it is decided: a release whose answer was lost is to be sent again */
  async release({ key, requestId }: Held): Promise<boolean> {
    const sentAt = Date.now();
    const path = `${ratePath(key)}/${requestId}`;
    const { status } = await this.caller.begin('DELETE', path).answer;
    return this.#released({ key, requestId }, status, sentAt);
  }

  /** @returns those that are to be sent again */
  async releaseMany(held: readonly Held[]): Promise<Held[]> {
    if (held.length === 0) return [];
    const sentAt = Date.now();
    const elements = held.map(({ key, requestId }) => ({ key, request_id: requestId }));
    const { answer } = this.caller.begin('DELETE', '/rate', elements);
    const results = resultsOf(await answer, held.length);
    return held.filter((one, i) => !this.#released(one, results[i]!.status, sentAt));
  }

  async #answered(key: string, { answer }: Asked): Promise<Held | undefined> {
    const sentAt = Date.now();
    try {
      const { status, body } = await answer;
      return this.#decided(key, { ...(body as object), status }, sentAt);
    } catch (error) {
      this.approvals.undecided(key);
      throw error;
    }
  }

  #decided(key: string, { status, request_id: requestId }: Result, sentAt: number) {
    if (status === 200 && requestId !== undefined) {
      this.approvals.approved(key, requestId, sentAt);
      return { key, requestId };
    }
    if (status === UNAVAILABLE) this.approvals.undecided(key);
    else if (status !== 429) throw new Error(`a check of ${key} was answered ${status}`);
    return undefined;
  }

  #released({ key, requestId }: Held, status: number, sentAt: number): boolean {
    if (status === UNAVAILABLE) {
      this.#maybeReleased.add(requestId);
      return false;
    }
    if (status === 404 && !this.#maybeReleased.has(requestId)) {
      this.approvals.notFound(key, requestId);
    } else if (status !== 200 && status !== 404) {
      throw new Error(`a release of ${key} was answered ${status}`);
    }
    this.approvals.released(key, requestId, sentAt);
    return true;
  }
}

/** The element of a bulk request. */
function checkOf(key: string): { readonly key: string } {
  return { key };
}

function resultsOf({ status, body }: Told, count: number): readonly Result[] {
  if (status === 200) return body as Result[];
  if (status === UNAVAILABLE) return Array.from({ length: count }, () => ({ status }));
  throw new Error(`a bulk request was answered ${status}`);
}
