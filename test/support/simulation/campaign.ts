import type { Redis } from 'ioredis';

import { say } from '../chaos/expect-no-violations.js';
import { type Aim, type Outcome, runSeed, runSteps, type Scripts } from './schedule.js';
import { formatShape } from './shape.js';
import { shrink } from './shrink.js';
import { simulatedScripts } from './stored-key.js';
import { Violation } from './snapshot.js';

/** Schedules at a time: while Redis answers one, this process goes on with the others. */
const AT_A_TIME = 3;

/** What came of schedules of seeds in a row. */
export interface CampaignReport {
  readonly schedules: number;
  readonly steps: number;
  /** The lowest seed that failed. */
  readonly failure: { readonly seed: number; readonly outcome: Outcome } | undefined;
}

/**
 * Runs the schedules of seeds from the first on, until one fails or `goesOn` is false for the number of started schedules.
 */
export async function runCampaign(
  redis: Redis,
  scripts: Scripts,
  firstSeed: number,
  goesOn: (schedules: number) => boolean,
  aim?: Aim,
): Promise<CampaignReport> {
  let started = 0;
  let schedules = 0;
  let steps = 0;
  const failures: NonNullable<CampaignReport['failure']>[] = [];
  const work = async (): Promise<void> => {
    while (failures.length === 0 && goesOn(started)) {
      const seed = firstSeed + started;
      started += 1;
      const outcome = await runSeed(redis, scripts, seed, aim);
      schedules += 1;
      steps += outcome.steps.length;
      if (outcome.violation) failures.push({ seed, outcome });
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  const [failure] = failures.sort((a, b) => a.seed - b.seed);
  return { schedules, steps, failure };
}

/** The failure with the steps that are needed for it. */
export async function shrinkFailure(
  redis: Redis,
  scripts: Scripts,
  { shape, steps, violation }: Outcome,
): Promise<Outcome> {
  const fewest = await shrink(steps, async (fewer) => {
    const outcome = await runSteps(redis, scripts, shape, fewer);
    return ruleOf(outcome.violation) === ruleOf(violation);
  });
  return runSteps(redis, scripts, shape, fewest);
}

/** A failure as a text: what was violated, by which steps, and how to have it again. */
export function describeFailure(seed: number, { shape, steps, trace, violation }: Outcome): string {
  const asText = `${formatShape(shape)}; ${steps.join('; ')}`;
  return [
    violation instanceof Violation ? violation.message : violation?.stack,
    `seed ${seed}; again: npm run test:simulation -- --seed ${seed} --seconds 0`,
    `as few steps: npm run test:simulation -- --steps '${asText}'`,
    formatShape(shape),
    ...trace,
  ].join('\n');
}

function ruleOf(violation: Error | undefined): string | undefined {
  return violation instanceof Violation ? violation.rule : violation?.name;
}

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
