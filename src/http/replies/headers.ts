/** Alternately a name and its value. */
export type Headers = readonly (string | number)[];

export const CORRELATION_HEADER = 'X-Correlation-ID';

/**
 * Headers of answers that a browser may show. The browser does not cache them, load anything for them, or frame them.
 */
export const BROWSER_HEADERS: Headers = [
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];
