// `npm run test:fuzz`: sends right, wrong and broken requests to services in processes of their own for
// a while, and checks that they answer well, and count what they accepted and nothing else.
import { parseArgs } from 'node:util';

import { runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:fuzz -- [options]

  --seed N         to have the same requests again (any)
  --seconds N      how long each service is sent requests (60)
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
await runLongTests('**/test/fuzz/*.test.ts', {
  FUZZ_SEED: values.seed,
  FUZZ_SECONDS: values.seconds,
});
