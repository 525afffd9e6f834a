// `npm run test:fuzz`: sends valid, invalid and broken requests to services in separate processes for a while,
// and checks that their answers are right and that they count only accepted requests.
import { longTestOptions, runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:fuzz -- [options]

  --seed N         to have the same requests again (any)
  --seconds N      how long each service is sent requests (60)
`;

const options = longTestOptions(HELP, ['seed', 'seconds']);
await runLongTests('**/test/service/fuzz/*.test.ts', {
  FUZZ_SEED: options.seed,
  FUZZ_SECONDS: options.seconds ?? '60',
});
