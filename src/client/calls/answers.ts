import type { CheckResult, ReleaseResult } from '../../api/bulk-schemas.js';
import type { NotFoundMessage, UncountedMessage } from '../../api/errors.js';
import type { Decision, Peek, RequestStatus, WaitProgress } from '../decision.js';
import { SluiceError, SluiceUnavailableError } from '../errors.js';
import type { Answer } from './exchange.js';
import { quotaOf } from './quota.js';

/** The messages of 503s that are certain to have counted nothing, so that a second request can't count twice. */
const COUNTED_NOTHING: Readonly<Record<UncountedMessage, true>> = {
  'store full: no room for another key': true,
  'too many approvals of the key': true,
  'shutting down': true,
  'too many waiters on this replica': true,
  'too many waiters of this caller on this replica': true,
};

/** A 404 with another message is not about an approval. */
const NOT_FOUND: NotFoundMessage = 'request not found';

/** What an answer says of a request. */
interface Told {
  readonly status: string;
  readonly position: number;
  readonly waitMillis: number;
  readonly holdMillis: number;
}

interface ErrorAnswer {
  readonly status: number;
  readonly error: string;
  readonly code?: string | undefined;
  readonly retryAfter?: number | undefined;
}

/** @throws SluiceError if the check was not decided */
export function decisionOf(result: CheckResult): Decision {
  if (result.status === 200) {
    const { request_id: requestId, shadow, outagePolicy } = result;
    const isCounted = shadow === undefined && outagePolicy !== 'allow';
    return isCounted
      ? { approved: true, requestId }
      : { approved: true, requestId, uncounted: true };
  }
  if (result.status === 429) {
    const { retryAfter: retryAfterSeconds, limit } = result;
    return { approved: false, retryAfterSeconds, ...(limit === undefined ? {} : { limit }) };
  }
  throw errorOf(result);
}

/**
 * @returns false if the approval no longer exists
 * @throws SluiceError if the release was rejected, or failed
 */
export function isReleased(result: ReleaseResult): boolean {
  if (result.status === 200) return true;
  if (result.status === 404) return false;
  throw errorOf(result);
}

/**
 * Whether there was the approval that a single request is about.
 * @throws SluiceError for an error
 */
export function isFound(answer: Answer): boolean {
  if (answer.status === 200) return true;
  const error = errorAnswerOf(answer);
  if (answer.status === 404 && error.error === NOT_FOUND) return false;
  throw errorOf(error);
}

/** What a request is now; undefined if there is no such request. @throws SluiceError for an error */
export function statusIn(answer: Answer): RequestStatus | undefined {
  if (!isFound(answer)) return undefined;
  const body = parsed(answer) as Partial<Told> | null | undefined;
  const { status, position, waitMillis, holdMillis } = body ?? {};
  if (status === 'approved') return holdMillis === undefined ? { status } : { status, holdMillis };
  if (status !== 'waiting' || typeof position !== 'number' || typeof waitMillis !== 'number') {
    throw notFromSluice(answer);
  }
  return { status, position, waitMillis };
}

/** @throws SluiceError for an error */
export function demandSuccess(answer: Answer): void {
  if (answer.status !== 200) throw errorOf(errorAnswerOf(answer));
}

/** The decision on a check that was sent alone. @throws SluiceError if it was not decided */
export function decisionIn(answer: Answer): Decision {
  const decision = decisionOf(resultOf(answer));
  const quota = quotaOf(answer);
  return quota === undefined ? decision : { ...decision, quota };
}

/**
 * The decision on a check that was sent alone, or its place if it still waits.
 * @throws SluiceError if it has neither
 */
export function turnIn(answer: Answer): Decision | WaitProgress {
  if (answer.status !== 202) return decisionIn(answer);
  const { position, waitMillis } = (parsed(answer) ?? {}) as Partial<WaitProgress>;
  if (typeof position !== 'number' || typeof waitMillis !== 'number') throw notFromSluice(answer);
  return { position, waitMillis };
}

/** What a check would get. @throws SluiceError if that is unknown */
export function peekIn(answer: Answer): Peek {
  const quota = quotaOf(answer);
  const more = quota === undefined ? {} : { quota };
  if (answer.status !== 429) demandSuccess(answer);
  const body = parsed(answer) as { readonly waitMillis?: unknown } | null | undefined;
  if (typeof body?.waitMillis !== 'number') throw notFromSluice(answer);
  const { waitMillis } = body;
  if (answer.status === 200) return { allowed: true, waitMillis, ...more };
  const limit = limitIn(answer);
  return { allowed: false, waitMillis, ...(limit === undefined ? {} : { limit }), ...more };
}

/** The answer to a single request, in the form of a bulk request's result. @throws SluiceError for an error */
function resultOf(answer: Answer): CheckResult {
  if (answer.status === 429) {
    const { error, retryAfter = 1 } = errorAnswerOf(answer);
    const limit = limitIn(answer);
    return { status: 429, error, code: 'RATE_LIMIT_EXCEEDED', retryAfter, limit };
  }
  demandSuccess(answer);
  const body = parsed(answer) as { readonly request_id?: string } | undefined;
  if (typeof body?.request_id !== 'string') throw notFromSluice(answer);
  const { 'x-sluice-shadow': shadow, 'x-sluice-outage-policy': outagePolicy } = answer.headers;
  return { status: 200, request_id: body.request_id, shadow, outagePolicy } as CheckResult;
}

/** The results of a bulk request, in the order of its elements. @throws SluiceError for any other answer */
export function resultsOf(answer: Answer, count: number): readonly unknown[] {
  demandSuccess(answer);
  const results = parsed(answer);
  if (!Array.isArray(results) || results.length !== count) throw notFromSluice(answer);
  return results as unknown[];
}

function errorOf({ status, error, code, retryAfter: retryAfterSeconds }: ErrorAnswer): SluiceError {
  if (status >= 400 && status < 500) return new SluiceError(error, { status, code });
  const mayHaveCounted = status !== 503 || !(error in COUNTED_NOTHING);
  return new SluiceUnavailableError(error, { status, code, mayHaveCounted, retryAfterSeconds });
}

function errorAnswerOf(answer: Answer): ErrorAnswer {
  const { status, headers } = answer;
  const body = parsed(answer) as
    { readonly error?: unknown; readonly code?: unknown } | null | undefined;
  const error = typeof body?.error === 'string' ? body.error : `status ${status}`;
  const seconds = Number(headers['retry-after']);
  return {
    status,
    error,
    code: typeof body?.code === 'string' ? body.code : undefined,
    retryAfter: headers['retry-after'] !== undefined && seconds >= 0 ? seconds : undefined,
  };
}

/** The limit that a denial names, if it names one. */
function limitIn(answer: Answer): string | undefined {
  const body = parsed(answer) as { readonly limit?: unknown } | null | undefined;
  return typeof body?.limit === 'string' ? body.limit : undefined;
}

function parsed({ text }: Answer): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function notFromSluice({ status }: Answer): SluiceError {
  const message = 'not an answer from Sluice';
  return new SluiceUnavailableError(message, { status, mayHaveCounted: true });
}
