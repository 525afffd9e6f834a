// `npm run test:simulation`: runs the waiting code of several replicas over the real scripts in one process.
// Each schedule has another order and other faults, and the invariants are checked after every
// step. A failure is printed with the fewest steps that lead to it.
import { longTestOptions, runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:simulation -- [options]

  --seed N         of the first schedule, to have the same ones again (any)
  --seconds N      how long schedules are begun; 0 is for one (60)
  --steps TEXT     what a failure has printed, to have just that again
`;

const options = longTestOptions(HELP, ['seed', 'seconds', 'steps']);
await runLongTests('**/test/long/*.simulation.ts', {
  SIMULATION_SEED: options.seed,
  SIMULATION_SECONDS: options.seconds,
  SIMULATION_STEPS: options.steps,
});
