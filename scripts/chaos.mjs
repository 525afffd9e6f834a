// `npm run test:chaos`: makes faults for a while, with every topology of Redis, and also changes rules.
// Checks that the limiter keeps its promises. It writes the results to test/long/results/latest.json.
import { longTestOptions, runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:chaos -- [options]

  --seed N         of the first round, to have the same faults again (any)
  --seconds N      how long faults go on in each round (60)
  --rounds N       rounds of each topology (1)
  --topology NAME  only this: standalone, sentinel or cluster
  --returning      instead of these: 200 clients that wait, leave and return, while replicas are killed, stopped and
                   frozen (600 seconds)
`;

const options = longTestOptions(HELP, ['seed', 'seconds', 'rounds', 'topology'], ['returning']);
await runLongTests(`**/test/long/*.${options.returning ? 'returning' : 'chaos'}.ts`, {
  CHAOS_SEED: options.seed,
  CHAOS_SECONDS: options.seconds,
  CHAOS_ROUNDS: options.rounds,
  CHAOS_TOPOLOGY: options.topology,
});
