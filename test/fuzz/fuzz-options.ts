/** What a run is asked for, by environment variables that `scripts/fuzz.mjs` sets. */
export interface FuzzOptions {
  /** What is sent follows from it. Drawn where none is asked for. */
  readonly seed: number;
  /** How long requests are sent to each service. */
  readonly seconds: number;
}

const MAX_SEED = 2 ** 32 - 1;

/** @throws Error where a variable has no sense */
export function fuzzOptions(
  environment: Readonly<Record<string, string | undefined>>,
  defaults: Pick<FuzzOptions, 'seconds'>,
): FuzzOptions {
  const number = (name: string, otherwise: number): number => {
    const given = environment[name];
    const value = given ? Number(given) : otherwise;
    if (!(value >= 0 && value <= MAX_SEED)) throw new Error(`${name}: got ${given!}`);
    return value;
  };
  return {
    seed: number('FUZZ_SEED', Math.floor(Math.random() * MAX_SEED)),
    seconds: number('FUZZ_SECONDS', defaults.seconds),
  };
}
