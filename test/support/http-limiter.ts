import { ShuttingDownError } from '../../src/limiter/errors.js';
import type { CheckRequest, Decision, Instance, Limiter } from '../../src/limiter/limiter.js';

interface InstanceBody {
  readonly Key: string;
  readonly Found: boolean;
  readonly Config: {
    readonly WindowMillis: number;
    readonly MaxRequestsPerWindow: number;
    readonly MaxRequestsInQueue: number;
  };
  readonly NumApprovedThisWindow: number;
  readonly NumDeniedThisWindow: number;
  readonly NumWaiting: number;
}

/**
 * A limiter as an HTTP client knows it, so that one behaviour suite can run through HTTP too. What
 * HTTP does not tell is filled in: the reason of a refusal, and the time to the window's end to the
 * millisecond.
 */
export class HttpLimiter implements Limiter {
  constructor(
    private readonly url: string,
    private readonly inner: Limiter,
  ) {}

  get waiting(): number {
    return this.inner.waiting;
  }

  async check(request: CheckRequest, signal?: AbortSignal): Promise<Decision> {
    const query = new URLSearchParams();
    if (request.canWait) query.set('canWait', 'true');
    if (request.maxRequests !== undefined) query.set('maxRequests', String(request.maxRequests));
    if (request.maxRequestsInQueue !== undefined) {
      query.set('maxRequestsInQueue', String(request.maxRequestsInQueue));
    }
    let answer: Response;
    try {
      answer = await fetch(`${this.#rate(request.key)}?${query.toString()}`, {
        method: 'POST',
        signal: signal ?? null,
      });
    } catch (error) {
      if (signal?.aborted) return { outcome: 'withdrawn' };
      throw error;
    }
    const body = (await answer.json()) as { request_id: string };
    if (answer.status === 200) return { outcome: 'approved', requestId: body.request_id };
    if (answer.status === 503) throw new ShuttingDownError();
    if (answer.status !== 429) throw new Error(`status ${answer.status}`);
    return {
      outcome: 'denied',
      reason: 'limit_reached',
      retryAfterMillis: Number(answer.headers.get('Retry-After')) * 1000,
    };
  }

  async release(key: string, requestId: string): Promise<boolean> {
    const answer = await fetch(`${this.#rate(key)}/${requestId}`, { method: 'DELETE' });
    await answer.text();
    return answer.status === 200;
  }

  async inspect(key: string): Promise<Instance | undefined> {
    const answer = await fetch(`${this.url}/debug/${encodeURIComponent(key)}`);
    const body = (await answer.json()) as InstanceBody;
    return body.Found ? fromBody(body) : undefined;
  }

  async *list(): AsyncIterable<Instance> {
    const answer = await fetch(`${this.url}/debug`);
    const body = (await answer.json()) as { Instances: Record<string, InstanceBody> };
    for (const instance of Object.values(body.Instances)) yield fromBody(instance);
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  #rate(key: string): string {
    return `${this.url}/rate/${encodeURIComponent(key)}`;
  }
}

function fromBody(body: InstanceBody): Instance {
  return {
    key: body.Key,
    limits: {
      windowMillis: body.Config.WindowMillis,
      maxRequests: body.Config.MaxRequestsPerWindow,
      maxRequestsInQueue: body.Config.MaxRequestsInQueue,
    },
    approved: body.NumApprovedThisWindow,
    denied: body.NumDeniedThisWindow,
    waiting: body.NumWaiting,
  };
}
