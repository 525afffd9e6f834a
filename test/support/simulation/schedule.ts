import type { Redis } from 'ioredis';

import { Random } from '../chaos/random.js';
import { act } from './actions.js';
import { withWindowsByRules } from './calendars.js';
import { bringToAnEnd } from './ending.js';
import { type Fate, Scheduler } from './scheduler.js';
import { drawShape, type WorldShape } from './shape.js';
import { World } from './world.js';

/** What became of a schedule. */
export interface Outcome {
  readonly shape: WorldShape;
  /** Those that were drawn; the end of a world follows from them. */
  readonly steps: readonly string[];
  /** All steps, the end included, and what came of each. */
  readonly trace: readonly string[];
  readonly violation: Error | undefined;
}

export type Scripts = Readonly<Record<string, string>>;

/** What all schedules of a search have, where it is known what a fault needs. The rest is drawn. */
export interface Aim {
  readonly fates?: readonly Fate[];
  readonly shape?: Partial<WorldShape>;
}

/** Runs the schedule of a seed. */
export async function runSeed(
  redis: Redis,
  scripts: Scripts,
  seed: number,
  { fates, shape: given }: Aim = {},
): Promise<Outcome> {
  const random = new Random(seed);
  const shape = withWindowsByRules({ ...drawShape(random.fork('shape')), ...given });
  const length = random.whole(30, 120);
  return run(redis, scripts, shape, async (world, take) => {
    const scheduler = new Scheduler(random.fork('steps'), world, fates);
    for (let i = 0; i < length; i += 1) await take(scheduler.next());
  });
}

/** Runs given steps, but for those for which there is nothing to do. */
export function runSteps(
  redis: Redis,
  scripts: Scripts,
  shape: WorldShape,
  steps: readonly string[],
): Promise<Outcome> {
  return run(redis, scripts, shape, async (_world, take) => {
    for (const step of steps) await take(step);
  });
}

async function run(
  redis: Redis,
  scripts: Scripts,
  shape: WorldShape,
  drive: (world: World, take: (step: string) => Promise<void>) => Promise<void>,
): Promise<Outcome> {
  const world = new World(redis, shape, scripts);
  const steps: string[] = [];
  let violation: Error | undefined;
  try {
    await drive(world, async (step) => {
      steps.push(step);
      if (!(await act(world, step))) steps.pop();
    });
    await bringToAnEnd(world);
  } catch (error) {
    violation = error as Error;
  } finally {
    await world.stored.remove();
  }
  return { shape, steps, trace: world.trace, violation };
}
