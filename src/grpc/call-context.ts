import { correlationIdOf, type RequestContext } from '../service/request-context.js';
import type { UnaryCall } from './unary-call.js';

/** The context of a call, as its headers tell it. */
export function contextOf({ headers }: Pick<UnaryCall, 'headers'>): RequestContext {
  return { correlationId: correlationIdOf(headers), startedAt: performance.now(), headers };
}
