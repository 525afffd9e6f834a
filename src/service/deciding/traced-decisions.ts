import type { RequestTrace } from '../../limiter/limiter.js';
import type {
  CallSpan,
  ChangeName,
  RequestSpan,
  SpanParent,
  Tracer,
} from '../../tracing/sdk/otel-tracer.js';
import { errorKindOf } from '../errors.js';
import type { RequestContext } from '../request-context.js';
import { serviceErrorFor } from '../store-failures.js';
import type { DecideCheck } from './decide-check.js';

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

const DONE = { release: 'released', amend: 'amended' } as const;

/**
 * Makes a change, with a span if there is a tracer. Returns the promise of the change itself if there is no span: one more
 * for each element would slow a bulk request.
 * @param change what it returns is falsy if there is no such approval
 */
export function inSpan<Result>(
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

/** Runs the work of a bulk request with a span above the spans of its elements. */
export async function inBulkSpan(
  name: 'check many' | 'release many',
  tracer: Tracer,
  context: RequestContext,
  work: () => Promise<void>,
): Promise<void> {
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
