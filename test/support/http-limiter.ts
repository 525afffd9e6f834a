import type { CallerPresence } from '../../src/limiter/caller-presence.js';
import { UnavailableError } from '../../src/limiter/errors.js';
import type {
  Amended,
  Amendment,
  CheckRequest,
  Decision,
  InstanceDetail,
  InstanceState,
  Limiter,
  Quota,
  RejectedAmendment,
  StoreCondition,
} from '../../src/limiter/limiter.js';
import { ownLimit } from '../../src/limiter/limits.js';
import { type DebugState, debugState } from './debug-state.js';
import { type Answer, approvedId, begin, ratePath, send } from './http-client.js';
import { ownQuota } from './quota.js';

/**
 * A limiter over HTTP, so that one behaviour suite can also run through HTTP. Information that HTTP does not
 * carry is filled in: the reason of a denial, and the time to the window's end to the
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

  async check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    const query = new URLSearchParams();
    if (request.canWait) query.set('canWait', 'true');
    if (request.maxRequests !== undefined) query.set('maxRequests', String(request.maxRequests));
    if (request.maxRequestsInQueue !== undefined) {
      query.set('maxRequestsInQueue', String(request.maxRequestsInQueue));
    }
    if (request.hits !== undefined) query.set('hits', String(request.hits));
    if (request.holdMillis !== undefined) query.set('holdMillis', String(request.holdMillis));
    if (request.maxWaitMillis !== undefined) {
      query.set('maxWaitMillis', String(request.maxWaitMillis));
    }
    const pending = begin(this.url, 'POST', `${ratePath(request.key)}?${query.toString()}`);
    if (caller) {
      caller.onDisconnect = () => {
        pending.disconnect();
      };
    }
    let answer: Answer;
    try {
      answer = await pending.answer;
    } catch (error) {
      if (caller?.isDisconnected) return { outcome: 'withdrawn' };
      throw error;
    }
    const { status, headers } = answer;
    if (status === 200) {
      return { outcome: 'approved', requestId: approvedId(answer), quota: quotaIn(headers) };
    }
    if (status === 503 && answer.text.includes('shutting down'))
      throw new UnavailableError('shutting_down');
    if (status !== 429) throw new Error(`status ${status}`);
    return {
      outcome: 'denied',
      reason: 'limit_reached',
      quota: quotaIn(headers),
      turnMillis: Number(headers['retry-after']) * 1000,
    };
  }

  giveBack(key: string, requestId: string): void {
    void this.release(key, requestId);
  }

  async pause(key: string, millis: number): Promise<void> {
    const { status } = await send(this.url, 'PUT', `${ratePath(key)}?pauseMillis=${millis}`);
    if (status !== 200) throw new Error(`status ${status}`);
  }

  async release(key: string, requestId: string): Promise<boolean> {
    const { status } = await send(this.url, 'DELETE', `${ratePath(key)}/${requestId}`);
    return status === 200;
  }

  async amend(
    key: string,
    requestId: string,
    amendment: Amendment,
  ): Promise<Amended | RejectedAmendment | undefined> {
    const { hits, holdMillis: asked } = amendment;
    const query = [
      hits === undefined ? '' : `hits=${hits}`,
      asked === undefined ? '' : `holdMillis=${asked}`,
    ].join('&');
    const answer = await send(this.url, 'PUT', `${ratePath(key)}/${requestId}?${query}`);
    if (answer.status === 404) return undefined;
    const mostHits = /hits must be at most (\d+) in a correction/.exec(answer.text)?.[1];
    if (answer.status === 403 && mostHits !== undefined) {
      return { rejected: 'hits', maxHits: Number(mostHits) };
    }
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    const { holdMillis } = answer.json() as Amended;
    return holdMillis === undefined ? {} : { holdMillis };
  }

  async inspect(key: string): Promise<InstanceState | undefined> {
    const body = await debugState(this.url, key);
    return body.Found ? toInstance(body as KnownState) : undefined;
  }

  examine(key: string, mostQueued: number): Promise<InstanceDetail | undefined> {
    return this.inner.examine(key, mostQueued);
  }

  async *list(): AsyncIterable<readonly InstanceState[]> {
    const answer = await send(this.url, 'GET', '/debug');
    const body = answer.json() as { Instances: Record<string, KnownState> };
    yield Object.values(body.Instances).map(toInstance);
  }

  limitsChanged(): void {
    this.inner.limitsChanged();
  }

  ping(): Promise<StoreCondition> {
    return this.inner.ping();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}

/** What the body leaves out if it is 0 or empty. */
type LeftOut = 'NumHeld' | 'PausedMillis' | 'Limits';
type KnownState = Required<Omit<DebugState, LeftOut>> & Pick<DebugState, LeftOut>;

/** From `RateLimit-Policy: "default";q=5;w=1` and `RateLimit: "default";r=4;t=1`. */
function quotaIn(headers: Answer['headers']): Quota {
  const text = `${String(headers['ratelimit-policy'])};${String(headers.ratelimit)}`;
  const number = (name: string): number => Number(new RegExp(`;${name}=(\\d+)`).exec(text)?.[1]);
  return ownQuota({
    windowMillis: number('w') * 1000,
    maxRequests: number('q'),
    remaining: number('r'),
    resetMillis: number('t') * 1000,
  });
}

function toInstance(body: KnownState): InstanceState {
  const own = ownLimit(body.Config.WindowMillis, body.Config.MaxRequestsPerWindow);
  return {
    key: body.Key,
    limits: [{ ...own, used: body.NumApprovedThisWindow, millisToWindowEnd: NaN }],
    maxRequestsInQueue: body.Config.MaxRequestsInQueue,
    denied: body.NumDeniedThisWindow,
    waiting: body.NumWaiting,
    // The schema's tests show that it is left out if it is 0.
    held: body.NumHeld ?? 0,
    pausedMillis: body.PausedMillis ?? 0,
  };
}
