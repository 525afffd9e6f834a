import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits for a state that announces itself by no event, such as a number in Redis; how long it takes
 * is left to the test's time limit.
 * @returns what `probe` returned first that is neither false nor undefined
 */
export async function until<T>(
  probe: () => T | false | undefined | Promise<T | false | undefined>,
): Promise<T> {
  for (;;) {
    const result = await probe();
    if (result !== false && result !== undefined) return result;
    await delay(5);
  }
}
