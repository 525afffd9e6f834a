import { setTimeout as delay } from 'node:timers/promises';

/** How many timers the time takes. A stall of the process counts as the time of one. */
const STEPS = 10;

/**
 * Calls `onOver` when the process has run for `millis`, and has read the data that had arrived by then.
 *
 * A process that stalls, as in a burst of TLS handshakes, neither sends nor reads, so that a stall says nothing about
 * the other side. And after a stall Node runs the timers that are due before it reads.
 * @returns a function that cancels it
 */
export function runningTime(millis: number, onOver: () => void): () => void {
  const step = Math.max(1, millis / STEPS);
  let remaining = millis;
  let isCancelled = false;
  let timer: NodeJS.Timeout;
  const end = (): void => {
    if (!isCancelled) onOver();
  };
  const run = (): void => {
    timer = setTimeout(() => {
      remaining -= step;
      if (remaining > 0) run();
      else setImmediate(end);
    }, step);
  };
  run();
  return () => {
    isCancelled = true;
    clearTimeout(timer);
  };
}

/** The work did not end in time. It may still end later. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';

  constructor(millis: number) {
    super(`no answer within ${millis} ms`);
  }
}

/** Resolves or rejects as `work` does within `millis` of running time. @throws TimeoutError */
export function withinDeadline<T>(work: Promise<T>, millis: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = runningTime(millis, () => reject(new TimeoutError(millis)));
    work.then(resolve, reject).finally(cancel);
  });
}

/** Resolves after `millis`, or as soon as `hurry` is aborted. */
export async function pause(millis: number, hurry?: AbortSignal): Promise<void> {
  try {
    await delay(millis, undefined, { signal: hurry });
  } catch {
    // Only the signal ends the delay early.
  }
}
