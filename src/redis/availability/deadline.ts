/** The work did not end in time. It may still end later. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';

  constructor(millis: number) {
    super(`no answer within ${millis} ms`);
  }
}

/**
 * Resolves or rejects as `work` does within `millis`.
 *
 * After a stall, Node runs the timers that are due before it reads the data that has arrived. So when the time is up,
 * that data is read first.
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
