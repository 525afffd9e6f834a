import { exceededLimit } from '../../src/limiter/exceeded-limit.js';
import type {
  CheckRequest,
  Decision,
  Limiter,
  Peek,
  PeekRequest,
  Quota,
} from '../../src/limiter/limiter.js';
import type { Answer } from './http-client.js';

type Approval = Extract<Decision, { readonly outcome: 'approved' }>;
type Denial = Extract<Decision, { readonly outcome: 'denied' }>;
type Waiting = Extract<Decision, { readonly outcome: 'waiting' }>;

interface Decided {
  readonly request: CheckRequest;
  readonly decision: Decision;
}

interface Peeked {
  readonly request: PeekRequest;
  readonly peek: Peek;
}

/**
 * The decisions of a limiter whose checks come over HTTP. An answer tells a decision only in part: it has no reason of a
 * denial, and whole seconds. So a test gets the decision itself, if the answer is the answer to this decision.
 */
export class ToldDecisions {
  readonly #untold = new Set<Decided>();
  readonly #untoldPeeks = new Set<Peeked>();
  #underWay = 0;

  /** @param limiter its `check` and its `peek` are replaced */
  constructor(limiter: Limiter) {
    const check = limiter.check.bind(limiter);
    limiter.check = (request, caller) => {
      const decision = check(request, caller);
      this.#underWay += 1;
      decision.then(
        (decision) => {
          this.#underWay -= 1;
          this.#untold.add({ request, decision });
        },
        () => (this.#underWay -= 1),
      );
      return decision;
    };
    const peek = limiter.peek.bind(limiter);
    limiter.peek = async (request) => {
      const peeked = { request, peek: await peek(request) };
      this.#untoldPeeks.add(peeked);
      return peeked.peek;
    };
  }

  /** How many checks have reached the limiter and are not decided. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Returns what the limiter said of a peek at the key that the answer tells, once. Throws if there is nothing. */
  takePeek(key: string, answer: Answer): Peek {
    for (const peeked of this.#untoldPeeks) {
      if (peeked.request.key !== key || !tellsPeek(answer, peeked)) continue;
      this.#untoldPeeks.delete(peeked);
      return peeked.peek;
    }
    const { status, headers, text } = answer;
    throw new Error(`no peek has the answer ${status} ${text} ${JSON.stringify(headers)}`);
  }

  /** Returns the decision on a check of the key that the answer tells, once. Throws if there is none. */
  take(key: string, answer: Answer): Decision {
    for (const decided of this.#untold) {
      if (decided.request.key !== key || !tells(answer, decided)) continue;
      this.#untold.delete(decided);
      return decided.decision;
    }
    const { status, headers, text } = answer;
    throw new Error(`no decision has the answer ${status} ${text} ${JSON.stringify(headers)}`);
  }
}

function tells(answer: Answer, { request, decision }: Decided): boolean {
  if (decision.outcome === 'approved') return tellsApproval(answer, decision);
  if (decision.outcome === 'waiting') return tellsPlace(answer, decision);
  return decision.outcome === 'denied' && tellsDenial(answer, request, decision);
}

function tellsPeek(answer: Answer, { request, peek }: Peeked): boolean {
  if (peek.outcome === 'denied') return tellsDenial(answer, request, peek);
  if (answer.status !== 200 || !peek.quota || !tellsQuota(answer, peek.quota)) return false;
  return answer.text === JSON.stringify({ key: request.key, waitMillis: 0 });
}

function tellsApproval(answer: Answer, { requestId, quota }: Approval): boolean {
  if (answer.status !== 200 || !quota) return false;
  return answer.text === JSON.stringify({ request_id: requestId }) && tellsQuota(answer, quota);
}

function tellsPlace(answer: Answer, { requestId, place }: Waiting): boolean {
  if (!place) return false;
  const { position, waitMillis } = place;
  const body = { request_id: requestId, position, waitMillis: Math.ceil(waitMillis) };
  return answer.status === 202 && answer.text === JSON.stringify(body);
}

function tellsDenial(
  answer: Answer,
  { hits = 1 }: PeekRequest,
  denial: Denial | Extract<Peek, { readonly outcome: 'denied' }>,
): boolean {
  const { quota, reason, turnMillis } = denial;
  if (reason === 'too_many_hits') {
    const told = /^hits must be at most (\d+), the maximum of .*, not (\d+)$/.exec(errorIn(answer));
    const maxima = quota.limits.map(({ maximum }) => maximum);
    return (
      answer.status === 400 && maxima.includes(Number(told?.[1])) && Number(told?.[2]) === hits
    );
  }
  if (answer.status !== 429 || !tellsQuota(answer, quota)) return false;
  const denying = reason === 'paused' ? undefined : exceededLimit(quota, hits);
  const resets = quota.limits.map(({ resetMillis }) => resetMillis);
  const resetMillis = reason === 'paused' ? Math.max(...resets) : denying?.resetMillis;
  const retryMillis = turnMillis ?? resetMillis ?? quota.limits[0].resetMillis;
  if (Number(answer.headers['retry-after']) !== Math.max(1, secondsOf(retryMillis))) return false;
  const { limit } = answer.json() as { limit?: string };
  return limit === (quota.limits.length > 1 && denying ? nameOf(denying) : undefined);
}

/** Such as `RateLimit-Policy: "default";q=5;w=1` and `RateLimit: "default";r=4;t=1`. */
function tellsQuota({ headers }: Answer, { limits }: Quota): boolean {
  const policies = limits.map((limit) => {
    const length = limit.windowMillis % 1000 === 0 ? `;w=${limit.windowMillis / 1000}` : '';
    return `"${nameOf(limit)}";q=${limit.maximum}${length}`;
  });
  const quotas = limits.map(
    (limit) => `"${nameOf(limit)}";r=${limit.remaining};t=${secondsOf(limit.resetMillis)}`,
  );
  return (
    headers['ratelimit-policy'] === policies.join(', ') && headers.ratelimit === quotas.join(', ')
  );
}

function errorIn(answer: Answer): string {
  return (answer.json() as { error?: string }).error ?? '';
}

/** The key's own limit has the name of its rule, and the keys of these tests have none. */
function nameOf({ name = 'default' }: { readonly name?: string | undefined }): string {
  return name;
}

function secondsOf(millis: number): number {
  return Math.ceil(millis / 1000);
}
