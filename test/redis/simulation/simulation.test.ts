import { extent } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';
import { describeFailure } from '../../support/simulation/campaign.js';
import { findFault, QUICK_FAULTS } from '../../support/simulation/planted-faults.js';
import { runSimulation } from '../../support/simulation/run-simulation.js';
import { runSeed, runSteps } from '../../support/simulation/schedule.js';
import { drawShape, formatShape, parseShape } from '../../support/simulation/shape.js';
import { shrink } from '../../support/simulation/shrink.js';
import { loadHelpers, simulatedScripts } from '../../support/simulation/stored-key.js';
import { Violation } from '../../support/simulation/violation.js';
import { Random } from '../../support/chaos/random.js';

/** Not a time, so that a busy machine runs the same ones. */
const SCHEDULES = extent(60, 250);
const SEEDS = [1, 2];

const redis = useRedis();
beforeAll(() => loadHelpers(redis.client));

test('the invariants hold in any order of events, and nothing is left', async () => {
  await runSimulation(redis.client, 1, (started) => started < SCHEDULES);
});

async function violationOf(shape: string, ...steps: string[]): Promise<Error | undefined> {
  const { violation } = await runSteps(redis.client, simulatedScripts(), parseShape(shape), steps);
  return violation;
}

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

  test("measures a wait by its replica's clock", async () => {
    const violation = await violationOf(
      'prompt world of 2 replicas, drift -17 0, window 4000, lease 1500, max 1, queue 5',
      'rules A max=2 queue=5',
      ...[1, 2, 3, 4, 5].map((number) => `ask A c${number} wait`),
      'ask A c6 wait limit=9390',
      ...['tick A', 'run A', 'answer A'],
      // B has a lower maximum, so c6 no longer comes in time.
      'ask B c7 wait',
    );
    expect(violation).toBeUndefined();
  });

  test.each([
    [
      'a release of a request that waits, after a loss of the state alone',
      'slow world of 2 replicas, drift -2 -6, window 500, lease 3000, max 2, queue 5, algorithm sliding_window:2',
      ['ask B c2', 'ask A c3 named hits=2 wait limit=500', 'again B c3 hits=2 wait'],
      ['release A c3', 'tick B', 'run B', 'forget state', 'tick A', 'run A'],
    ],
    [
      'a grant to a request of which a bucket still has an earlier approval',
      'slow world of 3 replicas, drift 20 11 2, window 500, lease 600, max 2, queue 2, algorithm token_bucket:1',
      ['ask A c1 named wait', 'again B c1 wait', 'tick B', 'pass 500', 'time-out B', 'run B'],
      ['pass 649', 'ask B c4 named hold=1500', 'tick B', 'run B'],
    ],
    [
      'the room for one hit, once nobody waits for several any more',
      'slow world of 2 replicas, drift 0 0, window 500, lease 3000, max 3, queue 20, limits a=5:4:requests::token_bucket:2',
      ['ask A c2 named wait', 'ask A c3 named hits=3 wait limit=605', 'again B c3 hits=3'],
      [],
    ],
    [
      'ids that a lost state has left of an own limit of another kind',
      'slow world of 3 replicas, drift -3 7 -5, window 500, lease 1500, max 1, queue 2, algorithm sliding_window:2, limits a=200:4:hits',
      ['ask C c2 wait limit=500', 'tick C', 'run C', 'ask B c3 wait', 'forget state', 'tick B'],
      [
        ...['rules B max=2 queue=4 window=200 algorithm=calendar:day.Short.3.4', 'ask C c5'],
        ...['run B', 'pass 500'],
        ...['rules C max=2 queue=3 window=500 algorithm=calendar:day.Short.10.149'],
      ],
    ],
    [
      'a newcomer with a greater head start than the waiters of its own lane',
      'slow world of 3 replicas, drift 0 0 0, window 500, lease 1500, max 3, queue 5, algorithm sliding_window:5',
      ['ask C c7 hits=2 wait list=lane:b:0', 'tick C', 'run C'],
      [
        ...['ask B c8 hits=3 wait list=lane:a:0', 'ask B c9 wait list=lane:b:0', 'tick B', 'run B'],
        ...['ask C c14 wait list=lane:b:17', 'tick C', 'run C'],
      ],
    ],
    [
      'the entry of a waiter that has left while the state was lost',
      'slow world of 2 replicas, drift 0 0, window 200, lease 600, max 1, queue 20',
      ['ask B c3', 'ask B c4 wait list=lane:a:0', 'tick B', 'run B'],
      [
        ...['ask A c14 wait list=lane:b:213', 'tick A', 'run A', 'forget state', 'pass 2478'],
        ...['time-out A', 'tick A', 'run A', 'ask B c13 wait list=lane:b:213', 'tick B', 'run B'],
      ],
    ],
    [
      'a place of a later check, after a late call of an earlier check of its replica',
      'slow world of 2 replicas, drift 10 -20, window 1000, lease 3000, max 3, queue 2, limits a=200:1:hits::::a,b=1000:2:hits::::a+b',
      [
        ...['ask A c1 wait limit=400 list=group:x:3:4', 'tick A'],
        ...['ask B c2 named hits=3 wait list=group:y:3', 'tick B'],
        ...['again A c2 hits=3 wait limit=196 list=group:y:2', 'tick A', 'pass 421'],
        ...['ask B c3 named wait limit=2548', 'pass 79', 'time-out B', 'tick B', 'time-out A'],
        ...['again B c3 wait list=lane:b:45', 'tick B', 'run B'],
      ],
      [
        ...['again B c2 hits=3 wait list=group:x:1:2', 'run B', 'tick B'],
        ...['again B c2 hits=3 wait list=group:y:1:1', 'tick B'],
        ...['ask B c5 named hits=2 wait list=group:x:1', 'tick B'],
        ...['run B', 'run B', 'run A', 'lose-call B', 'run B'],
      ],
    ],
    [
      'a kept place that was put back for a check from which it had been taken over',
      'prompt world of 4 replicas, drift -6 20 14 9, window 25, lease 1500, max 3, queue 20, algorithm calendar:day.Short.1.24, limits a=200:1:hits::::a,b=1000:2:hits::::a+b',
      [
        'ask A c2 named wait keep=2701 list=lane:a:236',
        ...['ask A c3 named wait keep=386 answer=0 list=lane:a:236', 'tick A', 'run A'],
        ...['answer A', 'tick A', 'again B c3 wait keep=386 list=group::1', 'tick B'],
      ],
      ['subscribe A', 'run A', 'run B', 'forget everything', 'hear A'],
    ],
  ])('knows %s', async (_what, shape, first, then) => {
    expect(await violationOf(shape, ...first, ...then)).toBeUndefined();
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
