import type { NamedAlgorithm } from '../../../../src/limiter/kinds/kinds.js';
import { REPLICA_LEASE_MILLIS } from '../limits.js';

/** A key of the clients that return. */
export interface ReturningKey {
  readonly key: string;
  readonly algorithm: NamedAlgorithm;
  readonly maximum: number;
  /** The most hits of a check. */
  readonly mostHits: number;
  /** Whether some approvals are held for a time that their callers choose. */
  readonly hasHolds: boolean;
}

export const WINDOW_MILLIS = 1000;

const FIXED = { name: 'fixed_window', calendar: undefined } as const;

/** Each algorithm, for single hits and for several with holds. The maxima are so low that clients wait on a busy machine as well. */
export const RETURNING_KEYS: readonly ReturningKey[] = [
  { key: 'fixed', algorithm: FIXED, maximum: 4, mostHits: 1, hasHolds: false },
  { key: 'fixed-terms', algorithm: FIXED, maximum: 8, mostHits: 3, hasHolds: true },
  ...(
    [
      ['sliding', { name: 'sliding_window', steps: 10 }],
      ['bucket', { name: 'token_bucket', burst: 4 }],
    ] as const
  ).flatMap(([name, algorithm]) => [
    { key: name, algorithm, maximum: 4, mostHits: 1, hasHolds: false },
    { key: `${name}-terms`, algorithm, maximum: 8, mostHits: 3, hasHolds: true },
  ]),
];

export const RETURNING_SETTINGS = {
  REPLICA_LEASE_MILLIS: String(REPLICA_LEASE_MILLIS),
  // Redis never fails here. A busy machine is no outage.
  STORE_TIMEOUT_MILLIS: '30000',
  WINDOW_MILLIS: String(WINDOW_MILLIS),
};

/** The rules file of these keys. */
export function rulesText(): string {
  return JSON.stringify({
    keys: RETURNING_KEYS.map(({ key, algorithm, maximum }) => ({
      key_pattern: key,
      max_requests_per_window: maximum,
      window_millis: WINDOW_MILLIS,
      algorithm: algorithm.name,
      ...(algorithm.name === 'sliding_window' && { steps: algorithm.steps }),
      ...(algorithm.name === 'token_bucket' && { burst: algorithm.burst }),
    })),
  });
}
