let endOfThisTurn: Promise<void> | undefined;

/**
 * Resolves when the event loop has read all that has arrived. Answers that are written together then
 * wake the receiving side once, where each of those written one by one would.
 */
export function endOfTurn(): Promise<void> {
  endOfThisTurn ??= new Promise((resolve) => {
    setImmediate(() => {
      endOfThisTurn = undefined;
      resolve();
    });
  });
  return endOfThisTurn;
}
