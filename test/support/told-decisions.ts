import { exceededLimit } from '../../src/limiter/exceeded-limit.js';
import type { CheckRequest, Decision, Limiter, Quota } from '../../src/limiter/limiter.js';
import type { Answer } from './http-client.js';

type Approval = Extract<Decision, { readonly outcome: 'approved' }>;
type Denial = Extract<Decision, { readonly outcome: 'denied' }>;

interface Decided {
  readonly request: CheckRequest;
  readonly decision: Decision;
}

/**
 * The decisions of a limiter whose checks come over HTTP. An answer tells a decision only in part: it has no reason of a
 * denial, and whole seconds. So a test gets the decision itself, if the answer is the answer to this decision.
 */
export class ToldDecisions {
  readonly #untold = new Set<Decided>();

  /** @param limiter its `check` is replaced */
  constructor(limiter: Limiter) {
    const check = limiter.check.bind(limiter);
    limiter.check = (request, caller) => {
      const decision = check(request, caller);
      decision.then(
        (decision) => this.#untold.add({ request, decision }),
        () => undefined,
      );
      return decision;
    };
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
  return decision.outcome === 'denied' && tellsDenial(answer, request, decision);
}

function tellsApproval(answer: Answer, { requestId, quota }: Approval): boolean {
  if (answer.status !== 200 || !quota) return false;
  return answer.text === JSON.stringify({ request_id: requestId }) && tellsQuota(answer, quota);
}

function tellsDenial(answer: Answer, { hits = 1 }: CheckRequest, denial: Denial): boolean {
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
