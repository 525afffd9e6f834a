interface ClassOf<Instance> {
  readonly prototype: Instance;
}

/** Changes a property of a class. Returns a function that undoes it. */
function change<Instance extends object>(
  { prototype }: ClassOf<Instance>,
  name: keyof Instance,
  other: (original: PropertyDescriptor) => PropertyDescriptor,
): () => void {
  const original = Object.getOwnPropertyDescriptor(prototype, name)!;
  Object.defineProperty(prototype, name, { configurable: true, ...other(original) });
  return () => Object.defineProperty(prototype, name, original);
}

/** Replaces a method of a class. Returns a function that undoes it. */
export function method<Instance extends object, Name extends keyof Instance>(
  of: ClassOf<Instance>,
  name: Name,
  other: (original: Instance[Name]) => Instance[Name],
): () => void {
  return change(of, name, ({ value }) => ({ value: other(value as Instance[Name]) }));
}

/** The same for a property that is computed. */
export function getter<Instance extends object, Name extends keyof Instance>(
  of: ClassOf<Instance>,
  name: Name,
  value: Instance[Name],
): () => void {
  return change(of, name, () => ({ get: () => value }));
}
