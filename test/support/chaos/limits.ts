import { type LimitInForce, ownLimit } from '../../../src/limiter/limits.js';

/** What the replicas of a round are set to. Times are in milliseconds. */
export const WINDOW_MILLIS = 500;
export const MAX_REQUESTS = 8;
export const STORE_TIMEOUT_MILLIS = 500;
export const REPLICA_LEASE_MILLIS = 2000;

/**
 * For how long an approval is remembered at the least, by the own limit of its key: docs/reliability.md.
 * @param own the default limit if it is omitted
 */
export function leastMemoryMillis(
  own: LimitInForce = ownLimit(WINDOW_MILLIS, MAX_REQUESTS),
): number {
  const threeWindows = 3 * own.windowMillis;
  return threeWindows < REPLICA_LEASE_MILLIS ? 2 * REPLICA_LEASE_MILLIS : threeWindows;
}

export const REPLICA_SETTINGS = {
  WINDOW_MILLIS: String(WINDOW_MILLIS),
  MAX_REQUESTS: String(MAX_REQUESTS),
  MAX_REQUESTS_IN_QUEUE: '50',
  STORE_TIMEOUT_MILLIS: String(STORE_TIMEOUT_MILLIS),
  REPLICA_LEASE_MILLIS: String(REPLICA_LEASE_MILLIS),
};

/** What no key of the load has while its rules are in force: who goes by the settings alone is found out. */
export const UNDECLARED = {
  WINDOW_MILLIS: String(WINDOW_MILLIS + 200),
  MAX_REQUESTS: '40',
  UNKNOWN_KEYS: 'deny',
};

/**
 * Keys by what is done to them. By most rules, the first of each sort has fixed windows, the second a sliding window,
 * and the third a token bucket.
 */
export const KEYS = {
  /** Checks that do not wait. */
  counted: ['counted-1', 'counted-2', 'counted-3'],
  /** Checks that wait, those whose clients disconnect, and now and then one that does not wait. */
  queued: ['queued-1', 'queued-2', 'queued-3'],
  /** The same, and approvals that are released. */
  released: ['released-1', 'released-2', 'released-3'],
  /** Checks with hits and holds, corrections, renewals and pauses, by rules with {@link FURTHER}. */
  limited: ['limited-1', 'limited-2', 'limited-3'],
  /** Checks with hits that name lanes, by most rules of the first and the third, or groups, most with {@link TENANT}. */
  ordered: ['ordered-1', 'ordered-2', 'ordered-3'],
} as const;

/** The lanes that the rules of a key may have, and the greatest head start of each in milliseconds. */
export const LANES: Readonly<Record<string, number>> = { interactive: 2000, normal: 700, batch: 0 };
export const GROUPS: readonly string[] = ['gold', 'a', 'b', 'c'];

/** What is the same of a further limit in all rules. */
export type FurtherKind = Omit<LimitInForce, 'maximum' | 'algorithm'> & { readonly name: string };

/** The further limits of limited keys. */
export const FURTHER: readonly FurtherKind[] = [
  { name: 'tokens', windowMillis: 900, counts: 'hits', keepsReleased: false },
  { name: 'starts', windowMillis: 1500, counts: 'requests', keepsReleased: true },
];

/** The further limit of keys with lanes: it counts some of them. */
export const SHARE: FurtherKind = {
  ...{ name: 'share', windowMillis: 900, counts: 'hits', keepsReleased: false },
};

/** The limit of keys with groups that each group has to itself. By all rules, it has a sliding window. */
export const TENANT: FurtherKind = {
  ...{ name: 'tenant', windowMillis: 900, counts: 'hits', keepsReleased: false },
};

/** Returns the name of a limit among the limits of all keys. The key's own limit has no name of its own. */
export function limitOf(key: string, name: string | undefined): string {
  return name === undefined ? key : `${key}/${name}`;
}

/** A report that lasts longer than its window makes the window longer. None lasts longer than this. */
export const LONGEST_REPORT_MILLIS = 800;

/** No check asks for more: all maxima but 0 have room for it. */
export const MOST_HITS = 3;

export const ALL_KEYS: readonly string[] = Object.values(KEYS).flat();
