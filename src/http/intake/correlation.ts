import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Up to 128 characters, none of them a control character. */
const ACCEPTABLE = /^[^\p{Cc}]{1,128}$/u;

/** The client's correlation id, or a new one if the client sent none that a log line can carry. */
export function correlationIdOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-correlation-id'];
  return typeof given === 'string' && ACCEPTABLE.test(given) ? given : randomUUID();
}
