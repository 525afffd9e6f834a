import type { oas31 } from 'zod-openapi';

import type { Settings } from '../../config/settings.js';

type Header = oas31.HeaderObject;

type Schema = NonNullable<Header['schema']>;

const TEXT: Schema = { type: 'string' };
const COUNT: Schema = { type: 'integer', minimum: 0 };

function header(description: string, schema = TEXT): Header {
  return { description, schema };
}

/** Is on every answer that lists it. */
function required(description: string, schema = TEXT): Header {
  return { description, schema, required: true };
}

/** Every header that Sluice sets. */
export const HEADERS = {
  'X-Correlation-ID': required(
    "The request's own id, or a new one. Each log line of the request also has it.",
  ),
  'X-Content-Type-Options': required('Disables MIME sniffing.', {
    type: 'string',
    const: 'nosniff',
  }),
  'Cache-Control': required('Answers must not be cached.'),
  'Content-Security-Policy': required('Limits what a browser may load.'),
  'Referrer-Policy': required('Suppresses the `Referer` header.', {
    type: 'string',
    const: 'no-referrer',
  }),
  'Retry-After': required(
    'Whole seconds. With a 429: until the window of the limit that denied ends or a hold lapses, or until the turn of a request whose wait would be too long. With a 503: 1, or 0 if another replica has the place of the request.',
    COUNT,
  ),
  'RateLimit-Policy': header(
    'The limits of the key by draft-ietf-httpapi-ratelimit-headers-11, its own maximum first: the name of the rule or of the limit, `q` approvals in a window of `w` seconds. Only if the check was counted.',
  ),
  RateLimit: header(
    'The rest of each limit: `r` approvals, and `t` seconds until the window ends or a hold lapses.',
  ),
  'X-RateLimit-Limit': header(
    'The approvals per window: of several limits, of the one that denied, or that has the least left. Only if the check was counted.',
    COUNT,
  ),
  'X-RateLimit-Remaining': header('The approvals left in the window.', COUNT),
  'X-RateLimit-Reset': header('The seconds until the window ends or a hold lapses.', COUNT),
  'X-Sluice-Outage-Policy': header(
    'The outage policy that decided, if Redis could not be reached.',
    {
      type: 'string',
      enum: ['allow', 'local'],
    },
  ),
  'X-Sluice-Shadow': header('A shadow rule would have denied the check.', {
    type: 'string',
    const: 'denied',
  }),
  'Preference-Applied': header(
    '`wait=N`, if the `Prefer` header of a request that may wait was followed.',
  ),
  Location: required('The path to go to.'),
  ETag: header('The version of a file that a browser caches.'),
  'WWW-Authenticate': header('Which token is required, by RFC 6750.'),
  Allow: header('The methods that the path takes.'),
  Connection: header('`close`, if the answer is the last on its connection.'),
};

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

export function headersOf(names: readonly HeaderName[]): oas31.HeadersObject {
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${name}` }] as const),
  );
}
