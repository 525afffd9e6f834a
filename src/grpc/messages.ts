/** The messages of Envoy's rate limit service as they are in JavaScript, by the names of `proto/`. */

/** A request of Envoy, with defaults for the fields that it left out. */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  readonly hits_addend: number;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  readonly limit: { readonly requests_per_unit: number; readonly unit: Unit } | null;
  /** Overrides the request's `hits_addend`. */
  readonly hits_addend: { readonly value: number } | null;
  /** Whether the hits are to be given back. */
  readonly is_negative_hits: boolean;
}

export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** By their numbers, as the units are. */
export const CODES = ['UNKNOWN', 'OK', 'OVER_LIMIT'] as const;

export type Code = (typeof CODES)[number];

/** Of replies. */
export const UNITS = 'UNKNOWN SECOND MINUTE HOUR DAY MONTH YEAR WEEK'.split(' ') as readonly Unit[];

/** Of the limits of requests. */
export const OVERRIDE_UNITS: readonly Unit[] = UNITS.slice(0, UNITS.indexOf('WEEK'));

export type Unit = 'UNKNOWN' | keyof typeof UNIT_MILLIS;

export interface RateLimitResponse {
  readonly overall_code: Code;
  readonly statuses: readonly DescriptorStatus[];
  readonly response_headers_to_add: readonly { readonly key: string; readonly value: string }[];
}

export interface DescriptorStatus {
  readonly code: Code;
  readonly current_limit?: {
    readonly requests_per_unit: number;
    readonly unit: Unit;
    readonly name: string;
  };
  readonly limit_remaining?: number;
  readonly duration_until_reset?: { readonly seconds: number; readonly nanos: number };
}

const DAY_MILLIS = 24 * 60 * 60 * 1000;

/** The windows that Envoy has a name for. Envoy's own service gives months and years the same lengths. */
export const UNIT_MILLIS = {
  SECOND: 1000,
  MINUTE: 60 * 1000,
  HOUR: 60 * 60 * 1000,
  DAY: DAY_MILLIS,
  WEEK: 7 * DAY_MILLIS,
  MONTH: 30 * DAY_MILLIS,
  YEAR: 365 * DAY_MILLIS,
} as const;

const UNIT_OF_MILLIS = new Map<number, Unit>(
  Object.entries(UNIT_MILLIS).map(([unit, millis]) => [millis, unit as keyof typeof UNIT_MILLIS]),
);

/** The name of a window; `UNKNOWN` if it has none. */
export function unitOf(windowMillis: number): Unit {
  return UNIT_OF_MILLIS.get(windowMillis) ?? 'UNKNOWN';
}
