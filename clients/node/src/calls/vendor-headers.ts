import type { ReportedLimits } from '../options.js';
import { structuredItems } from './quota.js';

export type VendorUnit = Exclude<keyof ReportedLimits, 'perGroup'>;

export interface VendorRemaining {
  readonly unit: VendorUnit;
  readonly remaining: number;
  /** Until the limit resets: 1 to 86,400,000; left out if the vendor does not say when. */
  readonly resetMillis?: number;
}

type Headers = Pick<globalThis.Headers, 'get'>;

/**
 * The headers that say what remains of a limit, and when it resets: of the older drafts of `RateLimit`, of GitHub and
 * many others, of OpenAI and Azure, and of Anthropic.
 */
const HEADERS: readonly (readonly [unit: VendorUnit, remaining: string, reset: string])[] = [
  ['requests', 'ratelimit-remaining', 'ratelimit-reset'],
  ['requests', 'x-ratelimit-remaining', 'x-ratelimit-reset'],
  ['requests', 'x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  ['tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
  ['requests', 'anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-reset'],
  ['tokens', 'anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-reset'],
  [
    'inputTokens',
    'anthropic-ratelimit-input-tokens-remaining',
    'anthropic-ratelimit-input-tokens-reset',
  ],
  [
    'outputTokens',
    'anthropic-ratelimit-output-tokens-remaining',
    'anthropic-ratelimit-output-tokens-reset',
  ],
];

const NUMBER = /^\d{1,15}(?:\.\d+)?$/;
const DURATION = /^(?:\d{1,15}(?:\.\d+)?(?:ms|[smhd]))+$/;
const DURATION_PART = /(\d+(?:\.\d+)?)(ms|[smhd])/g;
const UNIT_MILLIS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
/** RFC 3339. */
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
/** More seconds than these are a date: seconds since 1970. */
const YEAR_SECONDS = 365 * 86_400;
/** More than these, which would be in the year 5138, are milliseconds since 1970. */
const LARGEST_DATE_SECONDS = 1e11;
/** A date of HTTP. */
const HTTP_DATE = /^[A-Z][a-z]+, .* GMT$/;
/** The longest reset and the longest pause that Sluice takes. */
const LONGEST_MILLIS = 86_400_000;

/**
 * Reads what remains of the limits of a vendor, as the headers of its answer say. A limit may be there several times.
 * Ignores values that can't be read, and limits that have reset already.
 * @param now in ms since 1970, for an answer without its date
 */
export function remainingIn(headers: Headers, now: number): VendorRemaining[] {
  const byName = HEADERS.map(([unit, remaining, reset]) => ({
    unit,
    remaining: headers.get(remaining),
    reset: headers.get(reset),
  }));
  const sentAt = dateOf(headers) ?? now;
  return [...statedByDraft(headers), ...byName].flatMap((stated) => {
    const resets = itemsOf(stated.reset);
    return itemsOf(stated.remaining).flatMap((text, i) => {
      const reset = resets.length === 1 ? resets[0] : resets[i];
      return remainingOf(stated.unit, text, millisUntil(reset ?? '', sentAt));
    });
  });
}

/**
 * For how long an answer asks its caller to wait: by `Retry-After-Ms` of OpenAI and Azure, or by `Retry-After`, which has
 * seconds or a date (RFC 9110, section 10.2.3).
 * @param now as of `remainingIn`
 * @returns 0 to 86,400,000; 0 if it asks for nothing
 */
export function retryMillisIn(status: number, headers: Headers, now: number): number {
  if (status !== 429 && status !== 503) return 0;
  const text = headers.get('retry-after') ?? '';
  const seconds = numberIn(text);
  const untilDate = (httpDateIn(text) ?? -Infinity) - (dateOf(headers) ?? now);
  const millis =
    numberIn(headers.get('retry-after-ms') ?? '') ??
    (seconds === undefined ? untilDate : seconds * 1000);
  return Math.max(0, Math.min(Math.ceil(millis), LONGEST_MILLIS));
}

/** A header about several limits may be a list. */
function itemsOf(text: string | null | undefined): readonly string[] {
  return (text ?? '').split(',').map((item) => item.trim());
}

function remainingOf(
  unit: VendorUnit,
  text: string,
  resetMillis: number | undefined,
): VendorRemaining[] {
  const number = numberIn(text);
  if (number === undefined) return [];
  const remaining = Math.floor(number);
  if (resetMillis === undefined) return [{ unit, remaining }];
  if (resetMillis <= 0) return [];
  return [{ unit, remaining, resetMillis: Math.min(Math.ceil(resetMillis), LONGEST_MILLIS) }];
}

/**
 * What `RateLimit` says: `"name";r=12;t=60` for each limit, as of draft-ietf-httpapi-ratelimit-headers-08 to -11, or
 * `limit=100, remaining=12, reset=60`, as of -07.
 */
function statedByDraft(headers: Headers) {
  const header = headers.get('ratelimit') ?? '';
  const policies = new Map(structuredItems(headers.get('ratelimit-policy') ?? ''));
  const items = structuredItems(header)
    // Other units are bytes and connections.
    .filter(([name]) => (policies.get(name)?.get('qu') ?? '"requests"') === '"requests"')
    .map(([, parameters]) => ({ remaining: parameters.get('r'), reset: parameters.get('t') }));
  const remaining = /(?:^|[ ,])remaining=([\d.]+)/.exec(header)?.[1];
  const reset = /(?:^|[ ,])reset=(\d+)/.exec(header)?.[1];
  return [...items, { remaining, reset }].map((one) => ({ unit: 'requests' as const, ...one }));
}

/**
 * Reads when a limit resets: seconds, a duration such as `6m0s`, or a date, which is seconds or milliseconds since 1970
 * or RFC 3339.
 */
function millisUntil(text: string, now: number): number | undefined {
  const seconds = numberIn(text);
  if (seconds !== undefined) {
    if (seconds > LARGEST_DATE_SECONDS) return seconds - now;
    return seconds > YEAR_SECONDS ? seconds * 1000 - now : seconds * 1000;
  }
  if (DURATION.test(text)) {
    const parts = [...text.matchAll(DURATION_PART)];
    return parts.reduce((sum, [, n, unit = '']) => sum + Number(n) * (UNIT_MILLIS[unit] ?? 0), 0);
  }
  const date = DATE.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? undefined : date - now;
}

/** When an answer was sent, by the vendor's clock: its dates are of the same clock. */
function dateOf(headers: Headers): number | undefined {
  return httpDateIn(headers.get('date') ?? '');
}

function httpDateIn(text: string): number | undefined {
  const date = HTTP_DATE.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? undefined : date;
}

function numberIn(text: string): number | undefined {
  return NUMBER.test(text) ? Number(text) : undefined;
}
