import type { CallerPresence } from '../../src/limiter/caller-presence.js';
import {
  type RequestIdConflict,
  RequestIdConflictError,
  UnavailableError,
  type UnavailableReason,
} from '../../src/limiter/errors.js';
import type {
  Amended,
  Amendment,
  CheckRequest,
  Decision,
  Holding,
  InstanceDetail,
  InstanceState,
  Limiter,
  Peek,
  PeekRequest,
  RefundRequest,
  RejectedAmendment,
  RejectedReport,
  ReleaseOptions,
  Remaining,
  RemainingReport,
  RequestStatus,
  StoreCondition,
} from '../../src/limiter/limiter.js';
import { algorithmOf } from '../../src/limiter/algorithms.js';
import { type LimitState, type NamedAlgorithm, ownLimit } from '../../src/limiter/limits.js';
import { messageOf } from '../../src/service/errors.js';
import { type DebugAlgorithm, type DebugState, debugState } from './debug-state.js';
import { type Answer, begin, ratePath, send } from './http-client.js';
import { ToldDecisions } from './told-decisions.js';
import { until } from './until.js';

/**
 * A limiter over HTTP, so that one behaviour suite can also run through HTTP. What HTTP carries is compared with what the
 * limiter behind it says, and what HTTP does not carry is filled in.
 */
export class HttpLimiter implements Limiter {
  readonly #decisions: ToldDecisions;
  /** How many checks are sent, and neither answered nor disconnected. */
  #underWay = 0;

  /** @param inner the limiter behind `url` */
  constructor(
    private readonly url: string,
    private readonly inner: Limiter,
  ) {
    this.#decisions = new ToldDecisions(inner);
  }

  get waiting(): number {
    return this.inner.waiting;
  }

  waitingOf(key: string): number {
    return this.inner.waitingOf(key);
  }

  async check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    const { key, requestId, canWait, hits, holdMillis, holder, maxWaitMillis, keepMillis } =
      request;
    const { maxRequests, maxRequestsInQueue, windowMillis } = request;
    const query = queryOf({
      requestId,
      canWait: canWait || undefined,
      hits,
      holdMillis,
      holder: holder === undefined ? undefined : encodeURIComponent(holder),
      maxWaitMillis,
      keepMillis,
      maxRequests,
      maxRequestsInQueue,
      windowMillis,
    });
    const { answerMillis } = request;
    const headers = answerMillis === undefined ? {} : { prefer: `wait=${answerMillis / 1000}` };
    const pending = begin(this.url, 'POST', ratePath(key) + query, headers);
    this.#underWay += 1;
    if (caller) {
      caller.onDisconnect = () => {
        pending.disconnect();
      };
    }
    let answer: Answer;
    try {
      answer = await pending.answer;
    } catch (error) {
      if (!caller?.isDisconnected) throw error;
      return keepMillis === undefined || requestId === undefined
        ? { outcome: 'withdrawn' }
        : { outcome: 'waiting', requestId, place: undefined };
    } finally {
      this.#underWay -= 1;
    }
    if (answer.status === 503) throw new UnavailableError(reasonIn(answer));
    if (answer.status === 409) throw new RequestIdConflictError(conflictIn(answer));
    return this.#decisions.take(key, answer);
  }

  /** Resolves when the service has received each check and disconnect, and each of its answers has arrived. */
  async quiet(): Promise<void> {
    await until(() => this.#underWay === this.#decisions.underWay);
  }

  async peek({ key, hits, holdMillis }: PeekRequest): Promise<Peek> {
    const answer = await send(
      this.url,
      'GET',
      ratePath(key) + queryOf({ peek: true, hits, holdMillis }),
    );
    if (answer.status === 503) throw new UnavailableError(reasonIn(answer));
    return this.#decisions.takePeek(key, answer);
  }

  /** HTTP has no such request. */
  refund(request: RefundRequest): Promise<number> {
    return this.inner.refund(request);
  }

  giveBack(key: string, requestId: string): void {
    this.inner.giveBack(key, requestId);
  }

  async pause(key: string, millis: number): Promise<void> {
    const answer = await send(this.url, 'PUT', `${ratePath(key)}?pauseMillis=${millis}`);
    expectBody(answer, 200, { key, pauseMillis: millis });
  }

  async reportRemaining(
    key: string,
    { limit = 'default', remaining, resetMillis }: RemainingReport,
  ): Promise<Remaining | RejectedReport> {
    const query = queryOf({ remaining, resetMillis, limit });
    const answer = await send(this.url, 'PUT', ratePath(key) + query);
    const body = answer.json() as { readonly error: string; readonly remaining: number };
    if (answer.status !== 400) {
      expectBody(answer, 200, { key, limit, remaining: body.remaining });
      return { remaining: body.remaining };
    }
    expectBody(answer, 400, { error: body.error, key });
    const [, names] =
      /limit must be one of the limits of the key: default,? ?(.*)/.exec(body.error) ?? [];
    if (names !== undefined)
      return { rejected: 'limit', further: names.split(', ').filter(Boolean) };
    const [, algorithm] = /limit must name a fixed window; .* is a (.*)/.exec(body.error) ?? [];
    return { rejected: 'algorithm', algorithm } as RejectedReport;
  }

  async release(key: string, requestId: string, options?: ReleaseOptions): Promise<boolean> {
    // HTTP has no such releases.
    if (options?.isUnused) return this.inner.release(key, requestId, options);
    const answer = await send(this.url, 'DELETE', approvalPath(key, requestId));
    if (answer.status === 404) expectBody(answer, 404, { error: 'request not found', key });
    else expectBody(answer, 200, { request_id: requestId });
    return answer.status === 200;
  }

  async amend(
    key: string,
    requestId: string,
    { hits, holdMillis }: Amendment,
  ): Promise<Amended | RejectedAmendment | undefined> {
    const path = approvalPath(key, requestId) + queryOf({ hits, holdMillis });
    const answer = await send(this.url, 'PUT', path);
    if (answer.status === 404) {
      expectBody(answer, 404, { error: 'request not found', key });
      return undefined;
    }
    if (answer.status === 403) {
      const { error } = answer.json() as { error: string };
      const [, max] = /^hits must be at most (\d+) in a correction/.exec(error) ?? [];
      if (max === undefined) throw new Error(error);
      return { rejected: 'hits', maxHits: Number(max) };
    }
    const { holdMillis: left } = answer.json() as Amended;
    expectBody(answer, 200, { request_id: requestId, hits, holdMillis: left });
    return left === undefined ? {} : { holdMillis: left };
  }

  /** Over HTTP, the time until a turn is in whole milliseconds. */
  async statusOf(key: string, requestId: string): Promise<RequestStatus | undefined> {
    const answer = await send(this.url, 'GET', approvalPath(key, requestId));
    if (answer.status === 404) {
      expectBody(answer, 404, { error: 'request not found', key });
      return undefined;
    }
    const status = answer.json() as RequestStatus;
    expectBody(answer, 200, status);
    return status;
  }

  async inspect(key: string): Promise<InstanceState | undefined> {
    const body = await debugState(this.url, key);
    return body.Found ? toInstance(body as KnownState, await this.inner.inspect(key)) : undefined;
  }

  examine(key: string, mostQueued: number): Promise<InstanceDetail | undefined> {
    return this.inner.examine(key, mostQueued);
  }

  async holdings(key: string): Promise<readonly Holding[]> {
    const { Holders = [] } = await debugState(this.url, key);
    return Holders.map(({ Handle, Holder, HeldMillis, LapseMillis, Hits }) => ({
      handle: Handle,
      holder: Holder,
      heldMillis: HeldMillis,
      lapseMillis: LapseMillis,
      hits: Hits,
    }));
  }

  async endHold(key: string, handle: string): Promise<boolean> {
    const answer = await send(this.url, 'DELETE', `${ratePath(key)}/holders/${handle}`);
    if (answer.status === 404) expectBody(answer, 404, { error: 'no such holder', key });
    else expectBody(answer, 200, { key, handle });
    return answer.status === 200;
  }

  async *list(): AsyncIterable<readonly InstanceState[]> {
    const answer = await send(this.url, 'GET', '/debug');
    const body = answer.json() as { Instances: Record<string, KnownState> };
    yield Object.values(body.Instances).map((instance) => toInstance(instance));
  }

  limitsChanged(): void {
    this.inner.limitsChanged();
  }

  ping(): Promise<StoreCondition> {
    return this.inner.ping();
  }

  handOver(): void {
    this.inner.handOver();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}

/** What the body leaves out if it is 0 or empty. */
type LeftOut = 'Holders' | 'NumHeld' | 'PausedMillis' | 'Limits' | keyof DebugAlgorithm;
type KnownState = Required<Omit<DebugState, LeftOut>> & Pick<DebugState, LeftOut>;

function queryOf(
  parameters: Readonly<Record<string, number | boolean | string | undefined>>,
): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return `?${given.map(([name, value]) => `${name}=${value}`).join('&')}`;
}

function approvalPath(key: string, requestId: string): string {
  return `${ratePath(key)}/${encodeURIComponent(requestId)}`;
}

function expectBody(answer: Answer, status: number, body: object): void {
  if (answer.status === status && JSON.stringify(answer.json()) === JSON.stringify(body)) return;
  throw new Error(`status ${answer.status} ${answer.text}`);
}

function reasonIn({ json }: Answer): UnavailableReason {
  const { error } = json() as { error: string };
  if (error === 'shutting down') return 'shutting_down';
  if (error === messageOf('HANDED_OVER', {})) return 'handed_over';
  if (error === 'too many approvals of the key') return 'key_full';
  throw new Error(error);
}

function conflictIn({ json }: Answer): RequestIdConflict {
  const { error } = json() as { error: string };
  if (error === messageOf('REQUEST_ID_USED', {})) return 'used';
  if (error === messageOf('PLACE_TAKEN_OVER', {})) return 'taken_over';
  if (error === messageOf('PLACE_WITHDRAWN', {})) return 'withdrawn';
  if (error === messageOf('REQUEST_ID_CONFLICT', { parameter: 'hits' })) return 'other_hits';
  if (error === messageOf('REQUEST_ID_CONFLICT', { parameter: 'holdMillis' })) return 'other_hold';
  if (error === messageOf('REQUEST_ID_CONFLICT', { parameter: 'holder' })) return 'other_holder';
  throw new Error(error);
}

function algorithmIn(body: DebugAlgorithm): NamedAlgorithm {
  const { Algorithm: name, Steps: steps, Burst: burst, Calendar: unit, TimeZone: timeZone } = body;
  if (unit && timeZone) return { name: 'fixed_window', calendar: { unit, timeZone } };
  return algorithmOf(name ?? 'fixed_window', { steps, burst });
}

/** @param inner the same state, of which HTTP does not show everything */
function toInstance(body: KnownState, inner?: InstanceState): InstanceState {
  const own = {
    ...ownLimit(body.Config.WindowMillis, body.Config.MaxRequestsPerWindow, algorithmIn(body)),
    used: body.NumApprovedThisWindow,
    millisToWindowEnd: inner?.limits[0].millisToWindowEnd ?? NaN,
  };
  const further = (body.Limits ?? []).map((limit): LimitState => {
    const { MaxHitsPerWindow: hits, MaxRequestsPerWindow: requests } = limit;
    const hidden = inner?.limits.find(({ name }) => name === limit.Name);
    return {
      name: limit.Name,
      windowMillis: limit.WindowMillis,
      maximum: hits ?? requests!,
      algorithm: algorithmIn(limit),
      counts: hits === undefined ? 'requests' : 'hits',
      used: limit.NumApprovedThisWindow,
      keepsReleased: hidden?.keepsReleased ?? false,
      millisToWindowEnd: hidden?.millisToWindowEnd ?? NaN,
    };
  });
  return {
    key: body.Key,
    limits: [own, ...further],
    maxRequestsInQueue: body.Config.MaxRequestsInQueue,
    denied: body.NumDeniedThisWindow,
    waiting: body.NumWaiting,
    // The schema's tests show that it is left out if it is 0.
    held: body.NumHeld ?? 0,
    pausedMillis: body.PausedMillis ?? 0,
  };
}
