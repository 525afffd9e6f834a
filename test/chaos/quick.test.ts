import { redisProgram } from '../support/redis-process.js';
import { chaosOptions } from './chaos-options.js';
import { endEverythingAfterwards } from './end-everything.js';
import { expectNoViolations, say } from './expect-no-violations.js';
import { runChaos } from './run-chaos.js';

endEverythingAfterwards();
const { seed, seconds, topologies } = chaosOptions(process.env, { seconds: 4, rounds: 1 });
/** The same ones at every run, so that a change is judged by what it changes; others by `npm run test:chaos`. */
const KNOWN_SEEDS = [11];
const seeds = process.env.CHAOS_SEED ? [seed] : KNOWN_SEEDS;
const ROUND_TIMEOUT_MILLIS = 360_000;

const describeWhere = redisProgram() === undefined ? describe.skip : describe;

describeWhere.each(topologies)('whatever goes wrong for a moment, with %s', (topology) => {
  test.each(seeds)(
    'limits, order and answers hold, and nothing is left (seed %d)',
    async (seed) => {
      say(`chaos: ${topology}, seed ${seed}, ${seconds} s`);
      const report = await runChaos({ topology, seed, seconds });
      expectNoViolations(report);
      expect(report.windows.byRedis).toBeGreaterThan(0);
      expect(report.windows.byTimes).toBeGreaterThan(0);
      expect(report.observedApprovals).toBeGreaterThan(0);
      expect(Object.keys(report.faults)).not.toEqual([]);
    },
    ROUND_TIMEOUT_MILLIS,
  );
});
