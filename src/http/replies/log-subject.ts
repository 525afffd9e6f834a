import { callersIds } from '../../tracing/trace-ids.js';
import type { Asker } from '../asker.js';

/** What every log line of a request has: who sent it, by which ids it is found, and its place in a trace. */
export function logSubject({ locals, req }: Asker): object {
  const { correlationId, caller, span } = locals;
  return { correlationId, caller, ...(span?.ids ?? callersIds(req.headers.traceparent)) };
}
