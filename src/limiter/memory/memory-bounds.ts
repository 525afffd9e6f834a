/** How much an embedded limiter keeps. */
export interface MemoryBounds {
  /** The most requests that may wait here at once, over all keys. */
  readonly maxWaiters: number;
  readonly maxKeys: number;
  /** The most ids of approvals that are kept for one key's window. */
  readonly maxIdsPerKey: number;
  /** The most approvals of one key that are held. */
  readonly maxHoldsPerKey: number;
  /** The most memory that keys and the ids of approvals take together. */
  readonly maxBytes: number;
}

export const UNBOUNDED: MemoryBounds = {
  maxWaiters: Infinity,
  maxKeys: Infinity,
  maxIdsPerKey: Infinity,
  maxHoldsPerKey: Infinity,
  maxBytes: Infinity,
};
