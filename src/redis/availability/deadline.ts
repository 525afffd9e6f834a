/** The work was not done in time. It may still be done later. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';

  constructor(millis: number) {
    super(`no answer within ${millis} ms`);
  }
}

/**
 * Resolves or rejects as `work` does within `millis`.
 *
 * A process that stood still finds its timers due before it reads the data that has arrived meanwhile. So
 * the data is read first when the time is up.
 * @throws TimeoutError
 */
export function withinDeadline<T>(work: Promise<T>, millis: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => {
        reject(new TimeoutError(millis));
      });
    }, millis);
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
    });
  });
}
