/** What is to be known of the calls to Redis from outside; implemented by the metrics. */
export interface StoreObserver {
  /** A call of a script ended. @param outcome `ok`, or the kind of its failure */
  called(script: string, seconds: number, outcome: 'ok' | 'not_run' | 'unknown' | 'fault'): void;
  /** So many checks went in one call. */
  batched(checks: number): void;
  /** So many shards of the store are known to be down, and not asked. A store without shards is one. */
  breakersOpen(count: number): void;
}
