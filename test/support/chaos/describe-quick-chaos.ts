import { describeWithRedisProgram } from '../describe-with-redis-program.js';
import { IS_FULL } from '../extent.js';
import { chaosOptions } from './chaos-options.js';
import { endEverythingAfterwards } from './end-everything.js';
import { expectNoViolations, say } from './expect-no-violations.js';
import { runChaos } from './run-chaos.js';
import type { TopologyName } from './topologies/topology.js';

/** The same ones at every run, so that a change is judged by what it changes; others by `npm run test:chaos`. */
const KNOWN_SEEDS = [11];
const ROUND_TIMEOUT_MILLIS = 360_000;

/** A short round on one topology. Each has a file of its own, since rounds wait more than they work. */
export function describeQuickChaos(topology: TopologyName): void {
  endEverythingAfterwards();
  const { seed, seconds } = chaosOptions(process.env, { seconds: 4, rounds: 1 });
  const seeds = process.env.CHAOS_SEED ? [seed] : KNOWN_SEEDS;

  describeWithRedisProgram(`whatever goes wrong for a moment, with ${topology}`, () => {
    test.each(seeds)(
      'limits, order and answers hold, and nothing is left (seed %d)',
      async (seed) => {
        say(`chaos: ${topology}, seed ${seed}, ${seconds} s`);
        const report = await runChaos({ topology, seed, seconds, isQuick: !IS_FULL });
        expectNoViolations(report);
        expect(report.observedApprovals).toBeGreaterThan(0);
        expect(Object.keys(report.faults)).not.toEqual([]);
        expect(Object.keys(report.reloads)).not.toEqual([]);
      },
      ROUND_TIMEOUT_MILLIS,
    );
  });
}
