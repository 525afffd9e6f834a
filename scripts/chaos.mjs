// `npm run test:chaos`: has things go wrong for a while, with every topology of Redis, and checks that
// the limiter keeps what it promises. What happened is printed, and written to
// test/chaos/results/latest.json.
import { parseArgs } from 'node:util';

import { runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:chaos -- [options]

  --seed N         of the first round, to have the same faults again (any)
  --seconds N      how long faults go on in each round (60)
  --rounds N       rounds of each topology (1)
  --topology NAME  only this: standalone, sentinel or cluster
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    topology: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
await runLongTests('**/test/chaos/*.chaos.ts', {
  CHAOS_SEED: values.seed,
  CHAOS_SECONDS: values.seconds,
  CHAOS_ROUNDS: values.rounds,
  CHAOS_TOPOLOGY: values.topology,
});
