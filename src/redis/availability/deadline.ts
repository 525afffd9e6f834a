/** The work was not done in time; what it was about may be done yet. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';

  constructor(millis: number) {
    super(`no answer within ${millis} ms`);
  }
}

/**
 * What `work` settles with, if it does so within `millis`.
 *
 * A process that stood still finds its timers due before it reads what has arrived meanwhile. So when
 * time is up, what is there is read first.
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
