import { extent } from '../../support/extent.js';
import { createMemoryHarness, redisHarnessFactory } from '../../support/limiter-harness.js';
import {
  anySteps,
  stepsInAnyLists,
  stepsInGroups,
  stepsInLanes,
  stepsInLimitedGroups,
  stepsWithKeptPlaces,
  stepsWithReports,
} from '../../support/lockstep/sequences.js';
import type { Step } from '../../support/lockstep/step.js';
import { Subject } from '../../support/lockstep/subject.js';
import fc from '../../support/properties.js';
import { useRedis } from '../../support/use-redis.js';

describe('the embedded and the Redis limiter', () => {
  const redis = useRedis();
  const createRedisHarness = redisHarnessFactory(redis);

  async function expectSameOf(steps: readonly Step[]): Promise<void> {
    const memory = await Subject.create(createMemoryHarness);
    const inRedis = await Subject.create(createRedisHarness);
    try {
      for (const step of steps) {
        const answer = await memory.run(step);
        const answerOfRedis = await inRedis.run(step);
        if (memory.isAmbiguous) return;
        expect(answerOfRedis).toEqual(answer);
        expect(inRedis.outcomes()).toEqual(memory.outcomes());
        // A timer may be early, as after a pause. Such a settle grants nothing, but limits may come into force with it.
        await Promise.all([memory.settle(), inRedis.settle()]);
        expect(inRedis.outcomes()).toEqual(memory.outcomes());
        expect(await inRedis.states()).toEqual(await memory.states());
      }
    } finally {
      await Promise.all([memory.close(), inRedis.close()]);
    }
  }

  test('agree on every decision and every state after any sequence of steps', async () => {
    await fc.assert(fc.asyncProperty(anySteps, expectSameOf), { numRuns: extent(45, 350) });
  }, 600_000);

  test('agree on reports to fixed windows, between any other steps', async () => {
    await fc.assert(fc.asyncProperty(stepsWithReports, expectSameOf), { numRuns: extent(40, 120) });
  }, 600_000);

  test('agree on places that are kept, and on what becomes of them', async () => {
    await fc.assert(fc.asyncProperty(stepsWithKeptPlaces, expectSameOf), {
      numRuns: extent(50, 80),
    });
  }, 600_000);

  test.each([
    ['lanes', stepsInLanes],
    ['groups', stepsInGroups],
    ['groups with limits of their own', stepsInLimitedGroups],
    ['lists of any kinds', stepsInAnyLists],
  ])(
    'agree on %s',
    async (_, steps) => {
      await fc.assert(fc.asyncProperty(steps, expectSameOf), { numRuns: extent(25, 40) });
    },
    600_000,
  );
});
