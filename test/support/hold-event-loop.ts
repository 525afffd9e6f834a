/** Blocks this process for so long, like a machine that is too busy. */
export function holdEventLoop(millis: number): void {
  const endsAt = performance.now() + millis;
  while (performance.now() < endsAt);
}
