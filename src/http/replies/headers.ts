/** Names and values in turn. */
export type Headers = readonly (string | number)[];

export const CORRELATION_HEADER = 'X-Correlation-ID';

/** Says what decided in the place of a store that could not be asked. */
export const OUTAGE_POLICY_HEADER = 'X-Sluice-Outage-Policy';

/** Marks an approval that a rule would have denied, were it not in the shadow. */
export const SHADOW_HEADER = 'X-Sluice-Shadow';

/** Headers of what a browser may show. The browser keeps it nowhere, loads nothing for it and frames it not. */
export const BROWSER_HEADERS: Headers = [
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];

/** For `Retry-After`: whole seconds, rounded up, at least 1. RFC 9110, section 10.2.3. */
export function retryAfterSeconds(millis: number): number {
  return Math.max(1, Math.ceil(millis / 1000));
}
