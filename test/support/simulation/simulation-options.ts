import { numberIn, seedIn } from '../run-options.js';

/** What a run is asked for, by environment variables that `scripts/simulation.mjs` sets. */
export interface SimulationOptions {
  /** Of the first schedule; the others count up from it. Drawn where none is asked for. */
  readonly seed: number;
  readonly seconds: number;
  /** Of a world, as a failure prints them, to have it again instead. */
  readonly steps: string | undefined;
}

/** @throws Error where a variable has no sense */
export function simulationOptions(
  environment: Readonly<Record<string, string | undefined>>,
): SimulationOptions {
  return {
    seed: seedIn(environment, 'SIMULATION_SEED'),
    seconds: numberIn(environment, 'SIMULATION_SECONDS', 60),
    steps: environment.SIMULATION_STEPS,
  };
}
