import { setTimeout as delay } from 'node:timers/promises';

/** Resolves after `millis`, or as soon as `hurry` is aborted. */
export async function pause(millis: number, hurry?: AbortSignal): Promise<void> {
  try {
    await delay(millis, undefined, { signal: hurry });
  } catch {
    // Only the signal ends the delay early.
  }
}
