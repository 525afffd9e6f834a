import { numberIn, seedIn } from '../run-options.js';

/** The options of a run, from environment variables that `scripts/fuzz.mjs` sets. */
export interface FuzzOptions {
  /** It decides what is sent. Random if not given. */
  readonly seed: number;
  /** How many seconds requests are sent to each service. */
  readonly seconds: number;
}

/** @throws Error if a variable is invalid */
export function fuzzOptions(
  environment: Readonly<Record<string, string | undefined>>,
  defaults: Pick<FuzzOptions, 'seconds'>,
): FuzzOptions {
  return {
    seed: seedIn(environment, 'FUZZ_SEED'),
    seconds: numberIn(environment, 'FUZZ_SECONDS', defaults.seconds),
  };
}
