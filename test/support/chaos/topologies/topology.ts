import type { RedisProcess } from '../../redis-process.js';
import type { FaultKind } from '../faults/fault.js';
import type { Fleet } from '../fleet.js';

/** How Redis stands behind the replicas. */
export interface Topology {
  /** Every server that may hold keys. */
  readonly servers: readonly RedisProcess[];
  /** The settings by which the replica at an index finds its Redis. */
  environmentOf(index: number): Readonly<Record<string, string>>;
  /** What can go wrong. */
  faults(fleet: Fleet): FaultKind[];
  /** Resolves when every server serves, and all agree on who does what. */
  settled(): Promise<unknown>;
  stop(): Promise<void>;
}

export const TOPOLOGY_NAMES = ['standalone', 'sentinel', 'cluster'] as const;
export type TopologyName = (typeof TOPOLOGY_NAMES)[number];
