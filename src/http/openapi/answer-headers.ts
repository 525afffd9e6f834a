import type { oas31 } from 'zod-openapi';

import type { Settings } from '../../config/settings.js';

type Header = oas31.HeaderObject;

const text = { type: 'string' } as const;
const seconds = { type: 'integer', minimum: 0 } as const;

/** Every header that Sluice sets. A `required` header is on every answer that lists it. */
export const HEADERS = {
  'X-Correlation-ID': {
    description: "The request's own id, or a new one. Each log line of the request also has it.",
    schema: text,
    required: true,
  },
  'X-Content-Type-Options': {
    description: 'Disables MIME sniffing.',
    schema: { type: 'string', const: 'nosniff' },
    required: true,
  },
  'Cache-Control': {
    description: 'Answers must not be cached.',
    schema: text,
    required: true,
  },
  'Content-Security-Policy': {
    description: 'Limits what a browser may load.',
    schema: text,
    required: true,
  },
  'Referrer-Policy': {
    description: 'Suppresses the `Referer` header.',
    schema: { type: 'string', const: 'no-referrer' },
    required: true,
  },
  'Retry-After': {
    description:
      'Whole seconds. With a 429: until the window of the limit that denied ends or a hold lapses, or until the turn of a request whose wait would be too long. With a 503: 1, or 0 if another replica has the place of the request.',
    schema: seconds,
    required: true,
  },
  'RateLimit-Policy': {
    description:
      'The limits of the key by draft-ietf-httpapi-ratelimit-headers-11, its own maximum first: the name of the rule or of the limit, `q` approvals in a window of `w` seconds. Only if the check was counted.',
    schema: text,
  },
  RateLimit: {
    description:
      'The rest of each limit: `r` approvals, and `t` seconds until the window ends or a hold lapses.',
    schema: text,
  },
  'X-RateLimit-Limit': {
    description:
      'The approvals per window: of several limits, of the one that denied, or that has the least left. Only if the check was counted.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Remaining': {
    description: 'The approvals left in the window.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Reset': {
    description: 'The seconds until the window ends or a hold lapses.',
    schema: seconds,
  },
  'X-Sluice-Outage-Policy': {
    description: 'The outage policy that decided, if Redis could not be reached.',
    schema: { type: 'string', enum: ['allow', 'local'] },
  },
  'X-Sluice-Shadow': {
    description: 'A shadow rule would have denied the check.',
    schema: { type: 'string', const: 'denied' },
  },
  'Preference-Applied': {
    description: '`wait=N`, if the `Prefer` header of a request that may wait was followed.',
    schema: text,
  },
  Location: { description: 'The path to go to.', schema: text, required: true },
  ETag: { description: 'The version of a file that a browser caches.', schema: text },
  'WWW-Authenticate': { description: 'Which token is required, by RFC 6750.', schema: text },
  Allow: { description: 'The methods that the path takes.', schema: text },
  Connection: {
    description: '`close`, if the answer is the last on its connection.',
    schema: text,
  },
} as const satisfies Record<string, Header>;

export type HeaderName = keyof typeof HEADERS;

/** The headers of every answer. */
export const ALWAYS = ['X-Correlation-ID', 'X-Content-Type-Options'] as const;

/** The headers of errors and of pages for a browser. */
export const FOR_BROWSERS = [
  ...ALWAYS,
  'Cache-Control',
  'Content-Security-Policy',
  'Referrer-Policy',
] as const;

const RATE_LIMIT_HEADERS: Record<Settings['RATE_LIMIT_HEADERS'], readonly HeaderName[]> = {
  off: [],
  draft: ['RateLimit-Policy', 'RateLimit'],
  legacy: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
};

/** The headers of answers to decided checks, in the form that the settings name. */
export function ofDecisions({
  RATE_LIMIT_HEADERS: form,
}: Pick<Settings, 'RATE_LIMIT_HEADERS'>): readonly HeaderName[] {
  return [
    ...ALWAYS,
    'Cache-Control',
    ...RATE_LIMIT_HEADERS[form],
    'X-Sluice-Outage-Policy',
    'Preference-Applied',
  ];
}

/** References to the headers with these names. */
export function headersOf(names: readonly HeaderName[]): oas31.HeadersObject {
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${name}` }] as const),
  );
}
