// `npm run test:soak`: runs load on three replicas for a while, without faults, and checks that memory, handles
// and keys do not pile up. It prints the amounts, and writes them to
// test/long/results/soak.json.
import { longTestOptions, runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:soak -- [options]

  --seconds N  how long the load goes on (120)
  --seed N     to have the same load again (any)
`;

const options = longTestOptions(HELP, ['seconds', 'seed']);
await runLongTests('**/test/long/*.soak.ts', {
  CHAOS_SEED: options.seed,
  CHAOS_SECONDS: options.seconds,
});
