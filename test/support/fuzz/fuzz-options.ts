import { numberIn, seedIn } from '../run-options.js';

/** What a run is asked for, by environment variables that `scripts/fuzz.mjs` sets. */
export interface FuzzOptions {
  /** What is sent follows from it. Drawn where none is asked for. */
  readonly seed: number;
  /** How long requests are sent to each service. */
  readonly seconds: number;
}

/** @throws Error where a variable has no sense */
export function fuzzOptions(
  environment: Readonly<Record<string, string | undefined>>,
  defaults: Pick<FuzzOptions, 'seconds'>,
): FuzzOptions {
  return {
    seed: seedIn(environment, 'FUZZ_SEED'),
    seconds: numberIn(environment, 'FUZZ_SECONDS', defaults.seconds),
  };
}
