import { type ChaosOptions, chaosOptions } from '../chaos-options.js';
import type { TopologyName } from '../topologies/topology.js';
import { type Cell, cellsOf, nameOf } from './cells.js';

/** What a run of the matrix is asked for, by environment variables that `scripts/recovery.mjs` sets. */
export interface RecoveryOptions extends Pick<ChaosOptions, 'seed' | 'seconds' | 'topologies'> {
  /** The cells of a topology: all, or the one that is asked for. */
  readonly cellsOf: (topology: TopologyName) => Cell[];
}

/** @throws Error where a variable has no sense */
export function recoveryOptions(
  environment: Readonly<Record<string, string | undefined>>,
): RecoveryOptions {
  const { CHAOS_CELL: wanted } = environment;
  const options = chaosOptions(environment, { seconds: 0, rounds: 1 });
  const cells = (topology: TopologyName): Cell[] =>
    cellsOf(topology).filter((cell) => !wanted || nameOf(cell) === wanted);
  const topologies = options.topologies.filter((topology) => cells(topology).length > 0);
  if (topologies.length === 0) {
    throw new Error(`CHAOS_CELL: no cell of ${options.topologies.join()} is called ${wanted!}`);
  }
  return { ...options, topologies, cellsOf: cells };
}
