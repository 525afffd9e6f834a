/** Whether this replica should be sent requests. */
export interface Readiness {
  assess(): Promise<Assessment>;
}

/** In words for an operator. */
export interface Assessment {
  /** Why requests should go elsewhere; empty if they should come. */
  readonly reasons: readonly string[];
  /** What is wrong without being a reason: it is the same on other replicas. */
  readonly remarks: readonly string[];
}
