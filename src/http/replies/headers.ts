/** Names and values in turn. */
export type Headers = readonly (string | number)[];

export const CORRELATION_HEADER = 'X-Correlation-ID';

/** For what may be opened in a browser: it is not kept, loads nothing, and stands in no other page. */
export const BROWSER_HEADERS: Headers = [
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];

/** Whole seconds, rounded up, at least 1: RFC 9110, section 10.2.3. */
export function retryAfter(millis: number): Headers {
  return ['Retry-After', Math.max(1, Math.ceil(millis / 1000))];
}
