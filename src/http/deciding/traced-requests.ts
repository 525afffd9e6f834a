import type { RequestHandler } from 'express';

import type { CallSpan, SpanParent, Tracer } from '../../tracing/tracer.js';
import { errorAnswer } from '../replies/errors.js';
import { httpErrorFor } from '../replies/http-error-for.js';
import type { Asker } from '../asker.js';
import type { DecideCheck } from './decide-check.js';
import type { Release } from './release.js';

/** @returns what decides checks as `decide` does, each with a span */
export function tracedDecider<From extends Asker>(
  decide: DecideCheck<From>,
  tracer: Tracer,
): DecideCheck<From> {
  return async (check, from, answer, place) => {
    const span = parentOf(from, tracer).beginCheck(startOf(from));
    if (!span) return decide(check, from, answer, place);
    from.locals.span ??= span;
    try {
      await decide(
        { ...check, trace: span },
        from,
        (to, key, decision, policy, itsPlace) => {
          span.decided(decision, policy);
          return answer(to, key, decision, policy, itsPlace);
        },
        place,
      );
    } catch (error) {
      fail(span, error);
      throw error;
    }
  };
}

/** @returns what releases as `release` does, each with a span */
export function tracedRelease(release: Release, tracer: Tracer): Release {
  return async (key, requestId, response) => {
    const span = parentOf(response, tracer).beginRelease(startOf(response));
    if (!span) return release(key, requestId, response);
    response.locals.span ??= span;
    try {
      const isReleased = await release(key, requestId, response, span);
      span.ended(isReleased);
      return isReleased;
    } catch (error) {
      fail(span, error);
      throw error;
    }
  };
}

/** @returns a handler of calls for many that does as `handler` does, with a span above those of the elements */
export function tracedCall(
  handler: RequestHandler,
  name: 'check many' | 'release many',
  tracer: Tracer,
): RequestHandler {
  return async (request, response, next) => {
    const call = tracer.callerOf(request.headers).beginCall(name, response.locals.startedAt);
    response.locals.call = call;
    response.locals.span = call;
    try {
      await handler(request, response, next);
      call.ended();
    } catch (error) {
      fail(call, error);
      throw error;
    }
  };
}

function parentOf({ locals, req }: Asker, tracer: Tracer): SpanParent {
  return locals.call ?? tracer.callerOf(req.headers);
}

/** An element begins when its turn has come, everything else when it has arrived. */
function startOf({ locals }: Asker): number {
  return locals.call ? performance.now() : locals.startedAt;
}

function fail(span: Pick<CallSpan, 'failed'>, error: unknown): void {
  const { code } = httpErrorFor(error);
  span.failed(code, errorAnswer(code).status >= 500);
}
