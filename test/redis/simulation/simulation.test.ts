import { extent } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';
import { describeFailure, runSimulation } from '../../support/simulation/campaign.js';
import { findFault, QUICK_FAULTS } from '../../support/simulation/planted-faults.js';
import { runSeed, runSteps } from '../../support/simulation/schedule.js';
import { drawShape, formatShape, parseShape } from '../../support/simulation/shape.js';
import { shrink } from '../../support/simulation/shrink.js';
import { loadHelpers, simulatedScripts } from '../../support/simulation/stored-key.js';
import { Violation } from '../../support/simulation/snapshot.js';
import { Random } from '../../support/chaos/random.js';

/** Not a time, so that a busy machine runs the same ones. */
const SCHEDULES = extent(60, 250);
const SEEDS = [1, 2];

const redis = useRedis();
beforeAll(() => loadHelpers(redis.client));

test('the invariants hold in any order of events, and nothing is left', async () => {
  await runSimulation(redis.client, 1, (started) => started < SCHEDULES);
});

describe('the simulation', () => {
  test.each(SEEDS)(
    'does the same again for the same seed, and for the same steps (%d)',
    async (seed) => {
      const [first, second] = await Promise.all(
        [seed, seed].map((each) => runSeed(redis.client, simulatedScripts(), each)),
      );
      expect(first!.trace.length).toBeGreaterThan(50);
      expect(second).toEqual(first);
      const { shape, steps, trace } = first!;
      const again = await runSteps(redis.client, simulatedScripts(), shape, steps);
      expect(again.trace).toEqual(trace);
    },
  );

  test.each(QUICK_FAULTS)('finds that $name', (fault) => findFault(redis.client, fault));

  test('passes over steps for which there is nothing to do', async () => {
    const steps = ['run A', 'leave B c9', 'ask A c1 wait', 'hear D', 'tick A'];
    const outcome = await runSteps(
      redis.client,
      simulatedScripts(),
      drawShape(new Random(1)),
      steps,
    );
    expect(outcome).toMatchObject({ steps: ['ask A c1 wait', 'tick A'], violation: undefined });
  });

  test('can write and read the shape of every world', () => {
    for (let seed = 0; seed < 50; seed += 1) {
      const shape = drawShape(new Random(seed));
      expect(parseShape(formatShape(shape))).toEqual(shape);
    }
  });

  test('describes a failure with the options that repeat it', () => {
    const shape = drawShape(new Random(1));
    const violation = new Violation('nobody hangs', 'c1');
    const text = describeFailure(7, {
      shape,
      steps: ['tick A', 'run A'],
      trace: ['tick A'],
      violation,
    });
    expect(text).toContain('nobody hangs: c1');
    expect(text).toContain('--seed 7');
    expect(text).toContain(`--steps '${formatShape(shape)}; tick A; run A'`);
  });
});

test('a list of steps is shrunk to those that a failure needs, in a bounded number of runs', async () => {
  const steps = Array.from({ length: 100 }, (_, i) => `step ${i}`);
  const needed = ['step 3', 'step 50', 'step 51', 'step 99'];
  let runs = 0;
  const fails = (some: readonly string[]): Promise<boolean> => {
    runs += 1;
    return Promise.resolve(needed.every((step) => some.includes(step)));
  };
  expect(await shrink(steps, fails)).toEqual(needed);
  runs = 0;
  await shrink(steps, fails, 3);
  expect(runs).toBe(3);
});
