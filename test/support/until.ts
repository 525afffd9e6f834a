import { setTimeout as delay } from 'node:timers/promises';

/** Only a hang takes so long. Shorter than the time limit of a test, which could not show the probe. */
const LIMIT_MILLIS = 200_000;

/**
 * Waits for a state without an event, such as a number in Redis.
 * @returns the first result of `probe` that is neither false nor undefined
 * @throws Error that shows the probe, if it takes so long that something must hang
 */
export async function until<T>(
  probe: () => T | false | undefined | Promise<T | false | undefined>,
  limitMillis = LIMIT_MILLIS,
): Promise<T> {
  // Created here, so that its stack has the waiting code.
  const late = new Error(`waited ${limitMillis} ms for ${probe.toString()}`);
  const endsAt = performance.now() + limitMillis;
  for (;;) {
    const result = await probe();
    if (result !== false && result !== undefined) return result;
    if (performance.now() > endsAt) throw late;
    await delay(5);
  }
}
