import { jest } from '@jest/globals';

import { useRedis } from '../support/use-redis.js';
import { shrinkFailure } from '../support/simulation/campaign.js';
import { faultyScripts } from '../support/simulation/lua-fault.js';
import { findFault, PLANTED_FAULTS, QUICK_FAULTS } from '../support/simulation/planted-faults.js';
import { loadHelpers } from '../support/simulation/stored-key.js';
import { Violation } from '../support/simulation/snapshot.js';

/** The schedules bound the search, not the time. A busy machine takes ten times as long. */
jest.setTimeout(600_000);

const redis = useRedis();
beforeAll(() => loadHelpers(redis.client));

describe.each(Object.entries(PLANTED_FAULTS))('the simulation sees that %s', (_what, faults) => {
  test.each(faults)('so it finds that $name', (fault) => findFault(redis.client, fault));
});

test('a fault of an unknown function is refused', () => {
  expect(() => faultyScripts('lib/serving.serve_nobody', '')).toThrow(
    'lua/lib/serving.lua has no serve_nobody',
  );
});

test('a failure is shrunk to the steps that it needs', async () => {
  await findFault(redis.client, QUICK_FAULTS[0]!, async ({ outcome }, scripts) => {
    const { steps, violation } = await shrinkFailure(redis.client, scripts, outcome);
    expect(violation).toBeInstanceOf(Violation);
    expect(steps.length).toBeLessThan(5);
  });
});
