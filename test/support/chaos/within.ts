import { setTimeout as delay } from 'node:timers/promises';

const POLL_MILLIS = 50;

/**
 * What `work` resolves to, if it does so within `millis`.
 * @param what is waited for, in words, for the error
 * @throws Error when it does not
 */
export async function within<T>(millis: number, what: string, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`waited ${millis} ms for ${what}`));
    }, millis);
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks again and again, until the answer is good enough or `millis` are over. @returns the last answer */
export function lastWithin<T>(
  millis: number,
  probe: () => Promise<T>,
  isGoodEnough: (answer: T) => boolean,
): Promise<T> {
  const endsAt = performance.now() + millis;
  return lastUntil(() => performance.now() >= endsAt, probe, isGoodEnough);
}

/** Asks again and again, until the answer is good enough or the time is over. @returns the last answer */
export async function lastUntil<T>(
  isOver: () => boolean,
  probe: () => Promise<T>,
  isGoodEnough: (answer: T) => boolean,
): Promise<T> {
  for (;;) {
    const answer = await probe();
    if (isGoodEnough(answer) || isOver()) return answer;
    await delay(POLL_MILLIS);
  }
}
