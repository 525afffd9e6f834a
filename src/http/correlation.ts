import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

const CORRELATION_HEADER = 'X-Correlation-ID';

/** Up to 128 characters, none of them a control character. */
const ACCEPTABLE = /^[^\p{Cc}]{1,128}$/u;

/** The client's correlation id, or a new one where it sent none that a log line can carry; echoed. */
export function correlate(request: IncomingMessage, response: ServerResponse): void {
  const given = request.headers['x-correlation-id'];
  const id = typeof given === 'string' && ACCEPTABLE.test(given) ? given : randomUUID();
  response.setHeader(CORRELATION_HEADER, id);
}

/** The correlation id of the request that this answers. */
export function correlationIdOf(response: ServerResponse): string {
  return String(response.getHeader(CORRELATION_HEADER));
}
