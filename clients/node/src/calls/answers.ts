import type { CheckResult, KnownErrorCode, ReleaseResult, UncountedErrorCode } from '../api.js';
import type { Decision, Peek, RequestStatus, WaitProgress } from '../decision.js';
import { SluiceError, SluiceUnavailableError } from '../errors.js';
import { AnswerPart } from './answer-part.js';
import type { Answer } from './exchange.js';
import { quotaOf, wholeNumber } from './quota.js';

// Each function throws a SluiceError if an answer, or a result of a bulk request, says that the request was rejected or has
// failed, or is not from Sluice.

const COUNTED_NOTHING: Readonly<Record<UncountedErrorCode, true>> = {
  STORE_FULL: true,
  KEY_FULL: true,
  SHUTTING_DOWN: true,
  TOO_MANY_WAITERS: true,
  TOO_MANY_WAITERS_OF_CALLER: true,
};

/** A 404 with another code is not about an approval. */
const NOT_FOUND: KnownErrorCode = 'REQUEST_NOT_FOUND';

interface ErrorAnswer {
  readonly status: number;
  readonly error: string;
  readonly code?: string | undefined;
  readonly retryAfter?: number | undefined;
}

export function decisionOf(result: CheckResult): Decision {
  if (result.status === 200) {
    const { request_id: requestId, shadow, outagePolicy } = result;
    const isCounted = shadow === undefined && outagePolicy !== 'allow';
    return { approved: true, requestId, ...(isCounted ? {} : { uncounted: true }) };
  }
  if (result.status === 429) {
    const { retryAfter: retryAfterSeconds, limit } = result;
    return { approved: false, retryAfterSeconds, ...(limit === undefined ? {} : { limit }) };
  }
  throw errorOf(result);
}

/** @returns false if the approval no longer exists */
export function isReleased(result: ReleaseResult): boolean {
  if (result.status === 200) return true;
  if (result.status === 404) return false;
  throw errorOf(result);
}

/** Whether there was the approval that a single request is about. */
export function isFound(answer: Answer): boolean {
  if (answer.status === 200) return true;
  const error = errorAnswerOf(answer);
  if (answer.status === 404 && error.code === NOT_FOUND) return false;
  throw errorOf(error);
}

/** @returns undefined if there is no such request */
export function statusIn(answer: Answer): RequestStatus | undefined {
  if (!isFound(answer)) return undefined;
  const body = bodyOf(answer);
  if (body.field('status').text === 'waiting') return { status: 'waiting', ...placeIn(body) };
  const holdMillis = body.field('holdMillis');
  const status = 'approved';
  return holdMillis.isMissing ? { status } : { status, holdMillis: holdMillis.number };
}

function placeIn(body: AnswerPart): WaitProgress {
  return { position: body.field('position').number, waitMillis: body.field('waitMillis').number };
}

export function demandSuccess(answer: Answer): void {
  if (answer.status !== 200) throw errorOf(errorAnswerOf(answer));
}

/** The decision on a check that was sent alone. */
export function decisionIn(answer: Answer): Decision {
  const decision = decisionOf(resultOf(answer));
  const quota = quotaOf(answer);
  return quota === undefined ? decision : { ...decision, quota };
}

/** The same, or its place if it still waits. */
export function turnIn(answer: Answer): Decision | WaitProgress {
  return answer.status === 202 ? placeIn(bodyOf(answer)) : decisionIn(answer);
}

export function peekIn(answer: Answer): Peek {
  const quota = quotaOf(answer);
  const more = quota === undefined ? {} : { quota };
  if (answer.status !== 429) demandSuccess(answer);
  const waitMillis = bodyOf(answer).field('waitMillis').number;
  if (answer.status === 200) return { allowed: true, waitMillis, ...more };
  const limit = textIn(answer.body, 'limit');
  return { allowed: false, waitMillis, ...(limit === undefined ? {} : { limit }), ...more };
}

/** The answer to a single request, in the form of a bulk request's result. */
function resultOf(answer: Answer): CheckResult {
  if (answer.status === 429) {
    const { error, retryAfter = 1 } = errorAnswerOf(answer);
    const limit = textIn(answer.body, 'limit');
    return { status: 429, error, code: 'RATE_LIMIT_EXCEEDED', retryAfter, limit };
  }
  demandSuccess(answer);
  const id = bodyOf(answer).field('request_id').text;
  const { 'x-sluice-shadow': shadow, 'x-sluice-outage-policy': outagePolicy } = answer.headers;
  return { status: 200, request_id: id, shadow, outagePolicy } as CheckResult;
}

/** The results of a bulk request, in the order of its elements. */
export function resultsOf(answer: Answer, count: number): readonly unknown[] {
  demandSuccess(answer);
  const results = answer.body;
  const isResult = (result: { readonly status?: unknown } | null): boolean =>
    typeof result?.status === 'number';
  if (Array.isArray(results) && results.length === count && results.every(isResult)) return results;
  const message = 'not an answer from Sluice: the body must have a result for each element';
  throw new SluiceUnavailableError(message, { status: answer.status, mayHaveCounted: true });
}

function errorOf({ status, error, code, retryAfter: retryAfterSeconds }: ErrorAnswer): SluiceError {
  if (status >= 400 && status < 500) return new SluiceError(error, { status, code });
  const mayHaveCounted = status !== 503 || code === undefined || !(code in COUNTED_NOTHING);
  return new SluiceUnavailableError(error, { status, code, mayHaveCounted, retryAfterSeconds });
}

function errorAnswerOf({ status, headers, body }: Answer): ErrorAnswer {
  const error = textIn(body, 'error') ?? `status ${status}`;
  const retryAfter = wholeNumber(headers['retry-after']);
  return { status, error, code: textIn(body, 'code'), retryAfter };
}

/** A text in a body of any kind. */
function textIn(body: unknown, name: 'error' | 'code' | 'limit'): string | undefined {
  const value = (body as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  return typeof value === 'string' ? value : undefined;
}

function bodyOf({ body, status }: Answer): AnswerPart {
  return new AnswerPart(body, status);
}
