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

const MAX_SEED = 2 ** 32 - 1;

/** @throws Error where a variable has no sense */
export function chaosOptions(
  environment: Readonly<Record<string, string | undefined>>,
  defaults: Pick<ChaosOptions, 'seconds' | 'rounds'>,
): ChaosOptions {
  const topology = environment.CHAOS_TOPOLOGY;
  const topologies = TOPOLOGY_NAMES.filter((name) => !topology || name === topology);
  if (topologies.length === 0)
    throw new Error(`CHAOS_TOPOLOGY: no topology is called ${topology!}`);
  const number = (name: string, otherwise: number): number => {
    const given = environment[name];
    const value = given ? Number(given) : otherwise;
    if (!(value >= 0 && value <= MAX_SEED)) throw new Error(`${name}: got ${given!}`);
    return value;
  };
  return {
    seed: number('CHAOS_SEED', Math.floor(Math.random() * MAX_SEED)),
    seconds: number('CHAOS_SECONDS', defaults.seconds),
    topologies,
    rounds: number('CHAOS_ROUNDS', defaults.rounds),
  };
}
