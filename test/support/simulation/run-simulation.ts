import type { Redis } from 'ioredis';

import { say } from '../chaos/expect-no-violations.js';
import { describeFailure, runCampaign, shrinkFailure } from './campaign.js';
import { simulatedScripts } from './stored-key.js';

/**
 * Runs as many schedules as fit into a time, and at least one.
 * @throws Error that says what was violated, by as few steps as possible
 */
export async function runSimulation(redis: Redis, seed: number, seconds: number): Promise<void> {
  const scripts = simulatedScripts();
  const endsAt = performance.now() + seconds * 1000;
  const { schedules, steps, failure } = await runCampaign(
    redis,
    scripts,
    seed,
    (started) => started === 0 || performance.now() < endsAt,
  );
  say(`simulation: ${schedules} schedules, ${steps} steps, seed ${seed}`);
  if (!failure) return;
  throw new Error(
    describeFailure(failure.seed, await shrinkFailure(redis, scripts, failure.outcome)),
  );
}
