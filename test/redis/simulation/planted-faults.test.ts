import { jest } from '@jest/globals';

import { say } from '../../support/chaos/expect-no-violations.js';
import { IS_FULL } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';
import {
  type CampaignReport,
  runCampaign,
  shrinkFailure,
} from '../../support/simulation/campaign.js';
import { type PlantedFault, PLANTED_FAULTS } from '../../support/simulation/planted-faults.js';
import type { Scripts } from '../../support/simulation/schedule.js';
import { loadHelpers, simulatedScripts } from '../../support/simulation/stored-key.js';
import { Violation } from '../../support/simulation/violation.js';

type Failure = NonNullable<CampaignReport['failure']>;

const MOST_SCHEDULES = 4000;
/** The schedules bound the search, not the time. A busy machine takes ten times as long. */
jest.setTimeout(600_000);

const redis = useRedis();
beforeAll(() => loadHelpers(redis.client));

/** Finds a fault from its first seed on, and runs `then` while the fault is planted. */
async function find(
  { name, plant, scripts, aim, firstSeed = 1 }: PlantedFault,
  then: (failure: Failure, scripts: Scripts) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const texts = scripts?.() ?? simulatedScripts();
  const takeOut = plant?.();
  try {
    const goesOn = (schedules: number): boolean => schedules < MOST_SCHEDULES;
    const { failure } = await runCampaign(redis.client, texts, firstSeed, goesOn, aim);
    expect(failure?.outcome.violation).toBeInstanceOf(Violation);
    const { seed, outcome } = failure!;
    say(`simulation: ${name}: found by seed ${seed}: ${outcome.violation!.message}`);
    await then(failure!, texts);
  } finally {
    takeOut?.();
  }
}

const faults = PLANTED_FAULTS.filter(({ isRare }) => IS_FULL || !isRare);

test.each(faults)('the simulation finds that $name', (fault) => find(fault));

test('a failure is shrunk to the steps that it needs', async () => {
  const fault = PLANTED_FAULTS.find(({ name }) => name.endsWith('taken for a place in the queue'))!;
  await find(fault, async ({ outcome }, scripts) => {
    const { steps, violation } = await shrinkFailure(redis.client, scripts, outcome);
    expect(violation).toBeInstanceOf(Violation);
    expect(steps.length).toBeLessThan(5);
  });
});
