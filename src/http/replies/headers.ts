/** Names and values in turn. */
export type Headers = readonly (string | number)[];

export const CORRELATION_HEADER = 'X-Correlation-ID';

/** Headers of what a browser may show. The browser keeps it nowhere, loads nothing for it and frames it not. */
export const BROWSER_HEADERS: Headers = [
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];
