// `npm run test:recovery`: combines every kind of load with every kind of fault and every topology of Redis, and checks
// that the replica recovers in time, and that nothing is lost or counted twice. It prints the results, and writes them
// to test/long/results/recovery.json.
import { longTestOptions, runLongTests } from './lib/long-tests.mjs';

const HELP = `npm run test:recovery -- [options]

  --seed N         of the first round of cells, to have the same again (any)
  --seconds N      how long rounds of cells are begun in each topology; the first is always ended (0)
  --topology NAME  only this: standalone, sentinel or cluster
  --cell NAME      only this, such as bulk/stall-1500
`;

const options = longTestOptions(HELP, ['seed', 'seconds', 'topology', 'cell']);
await runLongTests('**/test/long/*.recovery.ts', {
  CHAOS_SEED: options.seed,
  CHAOS_SECONDS: options.seconds,
  CHAOS_TOPOLOGY: options.topology,
  CHAOS_CELL: options.cell,
});
