import { runningTime } from './running-time.js';

/** The work did not end in time. It may still end later. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';

  constructor(millis: number) {
    super(`no answer within ${millis} ms`);
  }
}

/**
 * Resolves or rejects as `work` does within `millis` of running time.
 * @throws TimeoutError
 */
export function withinDeadline<T>(work: Promise<T>, millis: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = runningTime(millis, () => {
      reject(new TimeoutError(millis));
    });
    work.then(resolve, reject).finally(cancel);
  });
}
