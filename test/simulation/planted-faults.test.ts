import { say } from '../chaos/expect-no-violations.js';
import { useRedis } from '../support/use-redis.js';
import { runCampaign, shrinkFailure } from './campaign.js';
import { PLANTED_FAULTS } from './planted-faults.js';
import { loadHelpers, simulatedScripts } from './stored-key.js';
import { Violation } from './violation.js';

const MOST_SCHEDULES = 4000;

const redis = useRedis();
beforeAll(() => loadHelpers(redis.client));

test.each(PLANTED_FAULTS)('the simulation finds that $name', async ({ name, plant, scripts }) => {
  const texts = scripts?.() ?? simulatedScripts();
  const takeOut = plant?.();
  try {
    const { failure } = await runCampaign(redis.client, texts, 1, (n) => n < MOST_SCHEDULES);
    expect(failure?.outcome.violation).toBeInstanceOf(Violation);
    const { steps, violation } = await shrinkFailure(redis.client, texts, failure!.outcome);
    say(
      `simulation: ${name}: found by ${failure!.seed} schedules, ${steps.length} steps: ` +
        violation!.message,
    );
  } finally {
    takeOut?.();
  }
});
