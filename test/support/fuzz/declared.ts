import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { LimitInForce } from '../../../src/limiter/limits.js';

/** How rules treat a key. In a service with rules each key contains its sort as `~sort~`. */
export const SORTS = [
  'open',
  'fixed',
  'capped',
  'few',
  'off',
  'shadow',
  'limited',
  'sliding',
  'bucket',
  'laned',
  'fair',
  'stranger',
] as const;
export type Sort = (typeof SORTS)[number];

export const SCOPES = ['check', 'release', 'debug', 'configure'] as const;
export type Scope = (typeof SCOPES)[number];

/** The rules for keys of a sort. */
export interface Treatment {
  /** Whether no check is approved. */
  readonly isOff?: true;
  /** The greatest values that requests may set; undefined if there is no bound. */
  readonly ceilings?: {
    readonly maxRequests: number;
    readonly maxRequestsInQueue: number;
    readonly windowMillis: number;
    readonly holdMillis: number;
  };
  /** Whether requests may set limits, and hold approvals. */
  readonly canBeSet?: false;
  /** Whether a pause, or a report, takes no scope of its own. */
  readonly canBePaused?: true;
  /** Of the own limit, if it has no fixed windows of the length in the settings. */
  readonly algorithm?: Algorithm;
  readonly further?: readonly FurtherLimit[];
  /** Whether its checks may name lanes, or groups. */
  readonly order?: 'lanes' | 'fair';
}

type FurtherLimit = LimitInForce & { readonly name: string };

const CEILINGS = {
  maxRequests: 10,
  maxRequestsInQueue: 5,
  windowMillis: 14_400_000,
  holdMillis: 7_200_000,
};

/** The longest window. Of a bucket that has it, nothing drains during a run that would change a count. */
const YEAR_MILLIS = 31_622_400_000;
/** The maximum of most keys. */
export const MAXIMUM = 1000;
/** The burst of buckets. */
export const BURST = 3;

/** The further limits of limited keys. The window of the first is the longest. */
const TOKENS = {
  name: 'tokens',
  windowMillis: 7_200_000,
  maximum: 6,
  algorithm: DEFAULT_ALGORITHM,
  counts: 'hits',
  keepsReleased: false,
} as const;
const STARTS = {
  name: 'starts',
  windowMillis: 3_600_000,
  maximum: 4,
  algorithm: DEFAULT_ALGORITHM,
  counts: 'requests',
  keepsReleased: true,
} as const;
/** Checks that name no lane are in the last one. During a run, nobody waits as long as a head start. */
export const LANES = [
  { name: 'interactive', head_start_millis: 7_200_000 },
  { name: 'normal', head_start_millis: 3_600_000 },
  { name: 'batch' },
] as const;
/** The limit of laned keys that counts some lanes. */
const SHARE = { ...TOKENS, name: 'share', maximum: 500, lanes: ['batch', 'normal'] } as const;
export const WEIGHTS: Readonly<Record<string, number>> = { gold: 4, 'é\u{1F6B0}': 2 };

export const TREATMENTS: Readonly<Record<Sort, Treatment>> = {
  open: {},
  fixed: { canBeSet: false },
  capped: { ceilings: CEILINGS },
  few: { canBePaused: true },
  off: { isOff: true, canBeSet: false },
  shadow: {},
  limited: { further: [TOKENS, STARTS] },
  sliding: { algorithm: { name: 'sliding_window', steps: 60 } },
  bucket: { algorithm: { name: 'token_bucket', burst: BURST }, ceilings: CEILINGS },
  laned: { further: [SHARE], order: 'lanes' },
  fair: { order: 'fair' },
  stranger: {},
};

export const FURTHER_NAMES: readonly string[] = Object.values(TREATMENTS).flatMap(
  ({ further = [] }) => further.map(({ name }) => name),
);

/** A caller with tokens. */
export interface Caller {
  readonly name: string;
  /** All of these are valid. */
  readonly token: readonly [string, ...string[]];
  readonly scopes: readonly Scope[];
  /** The sorts of the keys that it may use; undefined for all. */
  readonly sorts?: readonly Sort[];
}

/** The first caller may do everything. */
export const CALLERS: readonly [Caller, ...Caller[]] = [
  { name: 'everything', token: ['token-for-everything'], scopes: SCOPES },
  {
    name: 'checks',
    token: ['token-for-checks-only', 'another-token-for-checks-only'],
    scopes: ['check'],
  },
  { name: 'settings', token: ['token-for-checks-that-set-limits'], scopes: ['check', 'configure'] },
  { name: 'releases', token: ['token-for-releases-only'], scopes: ['release'] },
  { name: 'debugging', token: ['token-for-debugging-only'], scopes: ['debug'] },
  { name: 'limits', token: ['token-that-configures-only'], scopes: ['configure'] },
  {
    name: 'narrow',
    token: ['token-for-some-keys', 'another-token-for-some-keys'],
    scopes: SCOPES,
    sorts: ['capped', 'shadow'],
  },
  {
    name: 'narrow-checks',
    token: ['token-for-checks-of-some-keys'],
    scopes: ['check', 'release'],
    sorts: ['few', 'off', 'stranger'],
  },
];

/** The rules and tokens of a service. */
export interface Declared {
  readonly callers: readonly [Caller, ...Caller[]];
  /** Whether keys without a rule are rejected. */
  readonly refusesStrangers: boolean;
}

export function tokensText({ callers }: Pick<Declared, 'callers'>): string {
  return JSON.stringify(
    callers.map(({ sorts, ...caller }) => ({
      ...caller,
      ...(sorts && { key_patterns: sorts.map((sort) => `(?s).*${markOf(sort)}.*`) }),
    })),
  );
}

/** The name of the rule for all sorts that have one. */
export const KNOWN = 'known';

/** The rules. The first applies to several sorts, and later ones override it. */
export function rulesText(): string {
  const known = SORTS.filter((sort) => sort !== 'stranger');
  return JSON.stringify({
    keys: [
      rule(`~(${known.join('|')})~`, { name: KNOWN, max_requests_per_window: MAXIMUM }),
      rule('~(few|fixed)~', { max_requests_per_window: 2 }),
      rule('~(off|shadow)~', { max_requests_per_window: 1 }),
      rule('~(fixed|off)~', {
        requests_can_set_rate: false,
        requests_can_mod_queue: false,
        requests_can_set_window: false,
        requests_can_hold: false,
      }),
      rule('~(capped|bucket)~', {
        max_requests_ceiling: CEILINGS.maxRequests,
        max_requests_in_queue_ceiling: CEILINGS.maxRequestsInQueue,
        window_millis_ceiling: CEILINGS.windowMillis,
        max_hold_millis: CEILINGS.holdMillis,
      }),
      rule('~bucket~', { window_millis: YEAR_MILLIS }),
      rule('~few~', { requests_can_pause: true }),
      rule('~shadow~', { name: 'tried', shadow: true }),
      rule('~off~', { max_requests_per_window: 0 }),
      ...SORTS.flatMap((sort) => {
        const { algorithm, further, order } = TREATMENTS[sort];
        const queue = order === 'lanes' ? { lanes: LANES } : { fair: true, weights: WEIGHTS };
        // Their lanes are those of the same rule.
        const limits = further && { limits: further.map(limitRule) };
        return [
          ...(algorithm ? [rule(markOf(sort), algorithmFields(algorithm))] : []),
          ...(limits || order ? [rule(markOf(sort), { ...limits, ...(order && { queue }) })] : []),
        ];
      }),
    ],
  });
}

function algorithmFields({ name, ...parameter }: Algorithm): object {
  return { algorithm: name, ...parameter };
}

function limitRule(limit: FurtherLimit): object {
  const { name, windowMillis, maximum, counts, keepsReleased, lanes } = limit;
  return {
    name,
    window_millis: windowMillis,
    [`max_${counts}_per_window`]: maximum,
    releases_return: !keepsReleased,
    ...(lanes && { lanes }),
  };
}

function rule(pattern: string, fields: object): object {
  return { key_pattern: `(?s).*${pattern}.*`, key_pattern_is_regex: true, ...fields };
}

/** The part of a key that marks its sort. */
export function markOf(sort: Sort): string {
  return `~${sort}~`;
}

/** The sort of a key, which may be badly encoded; undefined if the service has no rules. */
export function sortOf(key: string): Sort | undefined {
  return SORTS.find((sort) => key.includes(markOf(sort)));
}
