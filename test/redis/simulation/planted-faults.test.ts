import { jest } from '@jest/globals';

import { say } from '../../support/chaos/expect-no-violations.js';
import { IS_FULL } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';
import {
  type CampaignReport,
  runCampaign,
  shrinkFailure,
} from '../../support/simulation/campaign.js';
import { faultyScripts } from '../../support/simulation/lua-fault.js';
import type { PlantedFault } from '../../support/simulation/planted-fault.js';
import { PLANTED_FAULTS } from '../../support/simulation/planted-faults.js';
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
  { name, plant, lua, body = '', aim, firstSeed = 1 }: PlantedFault,
  then: (failure: Failure, scripts: Scripts) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const texts = lua === undefined ? simulatedScripts() : faultyScripts(lua, body);
  const takeOut = plant?.();
  try {
    const goesOn = (schedules: number): boolean => schedules < MOST_SCHEDULES;
    const { failure } = await runCampaign(redis.client, texts, firstSeed, goesOn, aim);
    expect(failure?.outcome.violation).toBeInstanceOf(Violation);
    const { seed, outcome } = failure!;
    // A fault does something wrong, and is no script that can't run.
    expect(outcome.violation).not.toMatchObject({ rule: 'no script fails' });
    say(`simulation: ${name}: found by seed ${seed}: ${outcome.violation!.message}`);
    await then(failure!, texts);
  } finally {
    takeOut?.();
  }
}

const all = Object.entries(PLANTED_FAULTS);
const faultsByInvariant = all.map(
  ([invariant, faults]) => [invariant, faults.filter(({ isRare }) => IS_FULL || !isRare)] as const,
);

describe.each(faultsByInvariant)('the simulation sees that %s', (_invariant, faults) => {
  test.each(faults)('so it finds that $name', (fault) => find(fault));
});

test('a fault of an unknown function is refused', () => {
  expect(() => faultyScripts('lib/serving.serve_nobody', '')).toThrow(
    'lua/lib/serving.lua has no serve_nobody',
  );
});

test('a failure is shrunk to the steps that it needs', async () => {
  const fault = PLANTED_FAULTS['no approval is kept from others']![0]!;
  await find(fault, async ({ outcome }, scripts) => {
    const { steps, violation } = await shrinkFailure(redis.client, scripts, outcome);
    expect(violation).toBeInstanceOf(Violation);
    expect(steps.length).toBeLessThan(5);
  });
});
