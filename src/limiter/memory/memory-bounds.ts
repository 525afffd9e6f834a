import type { InstanceBounds } from './approvals.js';

/** How much an embedded limiter keeps. */
export interface MemoryBounds extends InstanceBounds {
  /** The most requests that may wait here at once, over all keys. */
  readonly maxWaiters: number;
  readonly maxKeys: number;
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
