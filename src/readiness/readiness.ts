/** Whether this replica should get requests. */
export interface Readiness {
  assess(): Promise<Assessment>;
}

/** In words for operators. */
export interface Assessment {
  /** Why requests should go elsewhere; empty if they should come. */
  readonly reasons: readonly string[];
  /** What is wrong but no reason, because it is the same on other replicas. */
  readonly remarks: readonly string[];
}
