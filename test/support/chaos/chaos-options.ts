import { numberIn, seedIn } from '../run-options.js';
import { TOPOLOGY_NAMES, type TopologyName } from './topologies/topology.js';

/** What a run of the suite is asked for, by environment variables that `scripts/chaos.mjs` sets. */
export interface ChaosOptions {
  /** Of the first round; the others count up from it. Drawn where none is asked for. */
  readonly seed: number;
  /** How long faults go on in each round. */
  readonly seconds: number;
  readonly topologies: readonly TopologyName[];
  /** Of each topology. */
  readonly rounds: number;
}

/** @throws Error where a variable has no sense */
export function chaosOptions(
  environment: Readonly<Record<string, string | undefined>>,
  defaults: Pick<ChaosOptions, 'seconds' | 'rounds'>,
): ChaosOptions {
  const topology = environment.CHAOS_TOPOLOGY;
  const topologies = TOPOLOGY_NAMES.filter((name) => !topology || name === topology);
  if (topologies.length === 0)
    throw new Error(`CHAOS_TOPOLOGY: no topology is called ${topology!}`);
  return {
    seed: seedIn(environment, 'CHAOS_SEED'),
    seconds: numberIn(environment, 'CHAOS_SECONDS', defaults.seconds),
    topologies,
    rounds: numberIn(environment, 'CHAOS_ROUNDS', defaults.rounds),
  };
}
