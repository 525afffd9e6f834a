/** Whether this replica should be sent requests. */
export interface Readiness {
  /** Why not, in words for an operator; empty where it should. */
  reasons(): Promise<readonly string[]>;
}
