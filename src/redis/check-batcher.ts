import type { CheckRequest } from '../limiter/limiter.js';
import type { KeyNaming } from './key-names.js';
import type { BatchedCheck, CheckReply, Overrides, Scripts } from './scripts.js';

/** A larger batch would hold Redis for longer than others should have to wait for it. */
const MAX_BATCH_SIZE = 500;

interface Batch {
  readonly key: string;
  readonly overrides: Overrides;
  readonly checks: BatchedCheck[];
  readonly answers: {
    resolve(reply: CheckReply): void;
    reject(error: unknown): void;
  }[];
}

/**
 * Sends the checks of one key that arrive in the same turn of the event loop as one script call.
 * None is held back for it: what has come by the end of the turn is sent, in the order it came.
 */
export class CheckBatcher {
  #batches: Batch[] = [];
  /** The last batch of each key, the only one that may still grow. */
  readonly #latest = new Map<string, Batch>();

  constructor(
    private readonly scripts: Scripts,
    private readonly naming: KeyNaming,
  ) {}

  send(request: CheckRequest, requestId: string): Promise<CheckReply> {
    const batch = this.#batchFor(request);
    batch.checks.push({ requestId, canWait: request.canWait });
    return new Promise((resolve, reject) => {
      batch.answers.push({ resolve, reject });
    });
  }

  #batchFor(request: CheckRequest): Batch {
    const latest = this.#latest.get(request.key);
    if (
      latest &&
      latest.checks.length < MAX_BATCH_SIZE &&
      latest.overrides.maxRequests === request.maxRequests &&
      latest.overrides.maxRequestsInQueue === request.maxRequestsInQueue
    ) {
      return latest;
    }
    const batch: Batch = {
      key: request.key,
      overrides: {
        maxRequests: request.maxRequests,
        maxRequestsInQueue: request.maxRequestsInQueue,
      },
      checks: [],
      answers: [],
    };
    if (this.#batches.length === 0) {
      setImmediate(() => {
        this.#flush();
      });
    }
    this.#batches.push(batch);
    this.#latest.set(request.key, batch);
    return batch;
  }

  #flush(): void {
    const batches = this.#batches;
    this.#batches = [];
    this.#latest.clear();
    for (const batch of batches) void this.#sendBatch(batch);
  }

  async #sendBatch({ key, overrides, checks, answers }: Batch): Promise<void> {
    try {
      const replies = await this.scripts.check(this.naming.namesOf(key), overrides, checks);
      for (const [i, answer] of answers.entries()) {
        const reply = replies[i];
        if (reply) answer.resolve(reply);
        else answer.reject(new Error(`check.lua left check ${i} of ${checks.length} unanswered`));
      }
    } catch (error) {
      for (const answer of answers) answer.reject(error);
    }
  }
}
