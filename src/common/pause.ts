import { setTimeout as delay } from 'node:timers/promises';

/** Resolves after `millis`, or at once in a hurry. */
export async function pause(millis: number, hurry?: AbortSignal): Promise<void> {
  try {
    await delay(millis, undefined, { signal: hurry });
  } catch {
    // Only the signal ends it early.
  }
}
