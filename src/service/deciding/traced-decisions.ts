import type { Amended, Amendment, Operator, RequestTrace } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type {
  CallSpan,
  ChangeName,
  RequestSpan,
  SpanParent,
  Tracer,
} from '../../tracing/sdk/otel-tracer.js';
import type { Access } from '../callers/access.js';
import { errorKindOf } from '../errors.js';
import type { RequestContext } from '../request-context.js';
import { serviceErrorFor } from '../store-failures.js';
import type { DecideCheck } from './decide-check.js';
import { rejectForbiddenRenewal, rejectionOf } from './parameter-rights.js';

/** Releases an approval, of a release alone or of a bulk request. @returns as the operation */
export type Release = (key: string, requestId: string, context: RequestContext) => Promise<boolean>;

/**
 * Changes an approval, and renews its hold if the key's policy still allows it.
 * @returns undefined as the operation
 * @throws ServiceError if the key's policy forbids the hits or the hold, SCOPE_MISSING if the caller may not release
 */
export type Amend = (
  key: string,
  requestId: string,
  amendment: Amendment,
  context: RequestContext,
) => Promise<Amended | undefined>;

/** The kinds of bulk requests, by the names of their spans. */
export type BulkName = 'check many' | 'release many';

/** Runs the work of a bulk request. */
export type RunBulk = (
  name: BulkName,
  context: RequestContext,
  work: () => Promise<void>,
) => Promise<void>;

/** Returns a function that decides checks as `decide` does, each with a span. */
export function tracedDecider(decide: DecideCheck, tracer: Tracer): DecideCheck {
  return (check, context, onDecided, onFailed) => {
    const span = parentOf(context, tracer).beginCheck(startOf(context));
    if (!span) {
      decide(check, context, onDecided, onFailed);
      return;
    }
    context.span ??= span;
    decide(
      { ...check, trace: span },
      context,
      (decided) => {
        span.decided(decided.decision, decided.policy, decided.limit?.name);
        onDecided(decided);
      },
      (error) => {
        fail(span, error);
        onFailed(error);
      },
    );
  };
}

/** Returns a function that releases approvals, each release with a span if there is a tracer. */
export function releaseBy(limiter: Operator<'release'>, tracer: Tracer | undefined): Release {
  return (key, requestId, context) =>
    inSpan('release', tracer, context, (trace) =>
      limiter.ask('release', { key, requestId, trace }),
    );
}

/** Returns a function that changes approvals, each change with a span if there is a tracer. */
export function amendBy(
  limiter: Operator<'amend'>,
  policyOf: (key: string) => KeyPolicy,
  access: Pick<Access, 'demand'>,
  tracer: Tracer | undefined,
): Amend {
  return (key, requestId, amendment, context) =>
    inSpan('amend', tracer, context, async (trace) => {
      const policy = policyOf(key);
      // It gives back everything, as a release does.
      if (amendment.hits === 0) access.demand('release', context);
      rejectForbiddenRenewal(amendment, policy);
      const bounds = {
        maxHits: policy.maxCorrectedHits,
        maxHoldMillis: policy.requestsCanHold ? policy.maxHoldMillis : 0,
      };
      const amended = await limiter.ask('amend', {
        key,
        requestId,
        ...amendment,
        ...bounds,
        trace,
      });
      if (amended && 'rejected' in amended) throw rejectionOf(amended, amendment, policy);
      return amended;
    });
}

const DONE = { release: 'released', amend: 'amended' } as const;

/**
 * Returns the promise of the change itself if there is no span: one more for each element would slow a bulk request.
 * @param change what it returns is falsy if there is no such approval
 */
function inSpan<Result>(
  name: ChangeName,
  tracer: Tracer | undefined,
  context: RequestContext,
  change: (trace?: RequestTrace) => Promise<Result>,
): Promise<Result> {
  const span = tracer && parentOf(context, tracer).beginChange(name, startOf(context));
  if (!span) return change();
  context.span ??= span;
  return recorded(name, span, change);
}

/** Tells the span how the change ends. */
async function recorded<Result>(
  name: ChangeName,
  span: RequestSpan,
  change: (trace: RequestTrace) => Promise<Result>,
): Promise<Result> {
  try {
    const result = await change(span);
    span.ended(result ? DONE[name] : 'not_found');
    return result;
  } catch (error) {
    fail(span, error);
    throw error;
  }
}

/** Returns a function that runs bulk requests, each with a span above the spans of its elements. */
export function tracedBulk(tracer: Tracer): RunBulk {
  return async (name, context, work) => {
    const span = tracer.callerOf(context.headers).beginCall(name, context.startedAt);
    context.bulkSpan = span;
    context.span = span;
    try {
      await work();
      span.ended();
    } catch (error) {
      fail(span, error);
      throw error;
    }
  };
}

function parentOf({ bulkSpan, headers }: RequestContext, tracer: Tracer): SpanParent {
  return bulkSpan ?? tracer.callerOf(headers);
}

/** An element begins in a slice of its bulk request, every other request when it has arrived. */
function startOf({ bulkSpan, startedAt }: RequestContext): number {
  return bulkSpan ? performance.now() : startedAt;
}

function fail(span: Pick<CallSpan, 'failed'>, error: unknown): void {
  const { code } = serviceErrorFor(error);
  span.failed(code, errorKindOf(code) === 'fail');
}
