/** Keeps this process from doing anything else for so long, as a machine does that is too busy. */
export function holdEventLoop(millis: number): void {
  const endsAt = performance.now() + millis;
  while (performance.now() < endsAt);
}
