/**
 * Runs steps one after the other. One that fails keeps none of the others from running.
 * @throws AggregateError of what they have thrown
 */
export async function inOrder(steps: readonly (() => unknown)[]): Promise<void> {
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
export async function withEach<T>(items: readonly T[], step: (item: T) => unknown): Promise<void> {
  const errors: unknown[] = [];
  const take = async (item: T): Promise<void> => {
    try {
      await step(item);
    } catch (error) {
      errors.push(error);
    }
  };
  await Promise.all(items.map(take));
  throwAll(errors);
}

function throwAll(errors: readonly unknown[]): void {
  // Steps may have steps themselves.
  const all = errors.flatMap((error): unknown[] =>
    error instanceof AggregateError ? error.errors : [error],
  );
  if (all.length > 0) throw new AggregateError(all, all.map(String).join('; '));
}
