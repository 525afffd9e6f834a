import type { oas31 } from 'zod-openapi';

import type { Settings } from '../../config/settings.js';

type Header = oas31.HeaderObject;

const text = { type: 'string' } as const;
const seconds = { type: 'integer', minimum: 0 } as const;

/** Every header of an answer that says something of Sluice. A `required` one is there wherever it is listed. */
export const HEADERS = {
  'X-Correlation-ID': {
    description: "The request's own, or a new one. Each log line of the request has it, too.",
    schema: text,
    required: true,
  },
  'X-Content-Type-Options': {
    description: 'The body is of the type that it is said to be.',
    schema: { type: 'string', const: 'nosniff' },
    required: true,
  },
  'Cache-Control': {
    description: 'An approval from a cache would be one too many.',
    schema: text,
    required: true,
  },
  'Content-Security-Policy': {
    description: 'What a browser may load for this.',
    schema: text,
    required: true,
  },
  'Referrer-Policy': {
    description: 'A browser tells nobody of this address.',
    schema: { type: 'string', const: 'no-referrer' },
    required: true,
  },
  'Retry-After': {
    description:
      'Whole seconds: with a 429 until the window ends, or until the turn of one that can not wait so long; 1 with a 503.',
    schema: { type: 'integer', minimum: 1 },
    required: true,
  },
  'RateLimit-Policy': {
    description:
      'The limit, as draft-ietf-httpapi-ratelimit-headers-11 has it: the name of its rule, `q` approvals in a window of `w` seconds. Only where the check was counted.',
    schema: text,
  },
  RateLimit: {
    description: 'What is left of the limit: `r` approvals, and `t` seconds until the window ends.',
    schema: text,
  },
  'X-RateLimit-Limit': {
    description: 'The approvals per window. Only where the check was counted.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Remaining': {
    description: 'What is left of them.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Reset': { description: 'The seconds until the window ends.', schema: seconds },
  'X-Sluice-Outage-Policy': {
    description: 'What decided in the place of Redis, where that could not be asked.',
    schema: { type: 'string', enum: ['allow', 'local'] },
  },
  'X-Sluice-Shadow': {
    description: 'A rule would have denied the check, were it not in the shadow.',
    schema: { type: 'string', const: 'denied' },
  },
  'Preference-Applied': {
    description: '`wait=N`, where the `Prefer` of a request that may wait was followed.',
    schema: text,
  },
  ETag: { description: 'Of a file that a browser keeps, and asks for again.', schema: text },
  'WWW-Authenticate': { description: 'Of RFC 6750: which token is wanted.', schema: text },
  Allow: { description: 'The methods that the path takes.', schema: text },
  Connection: { description: '`close`, where the answer is the last.', schema: text },
} as const satisfies Record<string, Header>;

export type HeaderName = keyof typeof HEADERS;

/** On every answer. */
export const ALWAYS = ['X-Correlation-ID', 'X-Content-Type-Options'] as const;

/** On errors and on pages for a browser. */
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

/** On answers to checks that are decided, in the form that the settings name. */
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
