import type { Redis } from 'ioredis';

import { say } from '../chaos/expect-no-violations.js';
import { describeFailure, runCampaign, shrinkFailure } from './campaign.js';
import { simulatedScripts } from './stored-key.js';

/**
 * Runs the schedules of seeds in a row while `goesOn` is true for the number of started ones.
 * @throws Error that says what was violated, by as few steps as possible
 */
export async function runSimulation(
  redis: Redis,
  seed: number,
  goesOn: (started: number) => boolean,
): Promise<void> {
  const scripts = simulatedScripts();
  const { schedules, steps, failure } = await runCampaign(redis, scripts, seed, goesOn);
  say(`simulation: ${schedules} schedules, ${steps} steps, seed ${seed}`);
  if (!failure) return;
  throw new Error(
    describeFailure(failure.seed, await shrinkFailure(redis, scripts, failure.outcome)),
  );
}

/** As many schedules as begin within a time from now on, and at least one. */
export function forSeconds(seconds: number): (started: number) => boolean {
  const endsAt = performance.now() + seconds * 1000;
  return (started) => started === 0 || performance.now() < endsAt;
}
