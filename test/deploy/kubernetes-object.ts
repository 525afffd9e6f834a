/** An object of the Kubernetes API, as a manifest has it. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

/** The only object of its kind and name among them. */
export function theOne(
  objects: readonly KubernetesObject[],
  kind: string,
  name?: string,
): KubernetesObject {
  const found = objects.filter(
    (object) => object.kind === kind && (name === undefined || object.metadata.name === name),
  );
  if (found.length !== 1) throw new Error(`${found.length} objects are ${kind} ${name ?? ''}`);
  return found[0]!;
}
