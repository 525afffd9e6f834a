/** Whether this replica should be sent requests. */
export interface Readiness {
  /** The reasons against it, in words for an operator; empty if there are none. */
  reasons(): Promise<readonly string[]>;
}
