let endOfThisTick: Promise<void> | undefined;

/**
 * Resolves when the event loop has read all that has arrived.
 *
 * Answers that are written one after the other then wake whoever reads them once, where each of those
 * written while requests are still read would: a quarter more decisions a second (BENCHMARKS.md).
 * Answers from Redis come together anyway.
 */
export function endOfTick(): Promise<void> {
  endOfThisTick ??= new Promise((resolve) => {
    setImmediate(() => {
      endOfThisTick = undefined;
      resolve();
    });
  });
  return endOfThisTick;
}
