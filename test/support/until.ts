import { setTimeout as delay } from 'node:timers/promises';

/** Only a hang takes so long. Less than the time limit of a test, which could not say what was waited for. */
const LIMIT_MILLIS = 50_000;

/**
 * Waits for a state that announces itself by no event, such as a number in Redis.
 * @returns what `probe` returned first that is neither false nor undefined
 * @throws Error that shows the probe, where that takes longer than anything takes but a hang
 */
export async function until<T>(
  probe: () => T | false | undefined | Promise<T | false | undefined>,
  limitMillis = LIMIT_MILLIS,
): Promise<T> {
  // Made here, where its stack has who waits.
  const late = new Error(`waited ${limitMillis} ms for ${probe.toString()}`);
  const endsAt = performance.now() + limitMillis;
  for (;;) {
    const result = await probe();
    if (result !== false && result !== undefined) return result;
    if (performance.now() > endsAt) throw late;
    await delay(5);
  }
}
