/**
 * Runs steps one after the other. One that fails keeps none of the others from running.
 * @throws AggregateError of what they have thrown
 */
export async function inOrder(
  steps: readonly ((() => void) | (() => Promise<unknown>))[],
): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(error);
    }
  }
  throwAll(errors);
}

/**
 * Takes a step with each item, all at once. Resolves when all are over.
 * @throws AggregateError of what they have thrown
 */
export async function withEach<T>(
  items: readonly T[],
  step: ((item: T) => void) | ((item: T) => Promise<unknown>),
): Promise<void> {
  const ends = await Promise.allSettled(items.map(async (item) => step(item)));
  throwAll(ends.flatMap((end): unknown[] => (end.status === 'rejected' ? [end.reason] : [])));
}

function throwAll(errors: readonly unknown[]): void {
  // Steps may have steps themselves.
  const all = errors.flatMap((error): unknown[] =>
    error instanceof AggregateError ? error.errors : [error],
  );
  if (all.length > 0) throw new AggregateError(all, all.map(String).join('; '));
}
