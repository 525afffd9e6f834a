import { say } from '../support/chaos/expect-no-violations.js';
import { numberIn, seedIn } from '../support/run-options.js';
import { useRedis } from '../support/use-redis.js';
import { forSeconds, runSimulation } from '../support/simulation/campaign.js';
import { runSteps } from '../support/simulation/schedule.js';
import { parseShape } from '../support/simulation/shape.js';
import { loadHelpers, simulatedScripts } from '../support/simulation/stored-key.js';

/** Time to shrink a failing run. */
const OTHER_TIMEOUT_MILLIS = 300_000;

/** Of the first schedule; the others count up from it. */
const seed = seedIn(process.env, 'SIMULATION_SEED');
const seconds = numberIn(process.env, 'SIMULATION_SECONDS', 60);
/** Of a world, as a failure prints them, to have it again instead. */
const { SIMULATION_STEPS: steps } = process.env;
const redis = useRedis();
beforeAll(() => loadHelpers(redis.client));

if (steps === undefined) {
  test(
    `the invariants hold in any order of events, and nothing is left (seed ${seed})`,
    () => runSimulation(redis.client, seed, forSeconds(seconds)),
    seconds * 1000 + OTHER_TIMEOUT_MILLIS,
  );
} else {
  test('the invariants hold with the given steps', async () => {
    const [shape = '', ...given] = steps.split(';').map((step) => step.trim());
    const outcome = await runSteps(redis.client, simulatedScripts(), parseShape(shape), given);
    say(outcome.trace.join('\n'));
    if (outcome.violation) throw outcome.violation;
  });
}
