/** Observes the calls to Redis. The metrics implement it. */
export interface StoreObserver {
  /** A call of a script ended. @param outcome `ok`, or the kind of its failure */
  called(script: string, seconds: number, outcome: 'ok' | 'not_run' | 'unknown' | 'fault'): void;
  /** A call with this number of checks was sent. */
  batched(checks: number): void;
  /** The number of shards known to be down, which are not asked. A store without shards counts as one. */
  breakersOpen(count: number): void;
}
