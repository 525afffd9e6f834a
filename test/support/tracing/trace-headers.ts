import { randomBytes } from 'node:crypto';

/** A caller's span, and the header that names it. */
export interface CallersSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly headers: { readonly traceparent: string };
}

/** @param flags 01 if the caller records its span */
export function callersSpan(flags: '00' | '01' = '01'): CallersSpan {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } };
}
