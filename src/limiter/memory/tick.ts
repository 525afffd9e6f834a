let endOfThisTick: Promise<void> | undefined;

/**
 * Resolves when the event loop has read all that has arrived.
 *
 * Answers that are written one after the other wake their reader once. Answers written while requests are
 * still read would each wake it, which costs a fifth of the decisions per second (BENCHMARKS.md). Answers from
 * Redis come together anyway.
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
