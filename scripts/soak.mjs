// `npm run test:soak`: runs load on three replicas for a while, without faults, and checks that neither
// memory nor handles nor keys pile up. What was held is printed, and written to
// test/chaos/results/soak.json.
import { parseArgs } from 'node:util';

import { runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:soak -- [options]

  --seconds N  how long the load goes on (120)
  --seed N     to have the same load again (any)
`;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
await runLongTests('**/test/chaos/soak/*.soak.ts', {
  CHAOS_SEED: values.seed,
  CHAOS_SECONDS: values.seconds,
});
