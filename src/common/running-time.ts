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
