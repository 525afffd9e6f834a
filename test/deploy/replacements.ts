/** Shipped texts, and what a test or a user has in their place. */
export type Replacements = readonly (readonly [shipped: string, here: string])[];

/** A text with replacements. It must have each replaced text once. */
export function withReplacements(
  name: string,
  shippedText: string,
  replacements: Replacements,
): string {
  return replacements.reduce((text, [shipped, here]) => {
    const parts = text.split(shipped);
    if (parts.length !== 2) throw new Error(`${name} has ${shipped} ${parts.length - 1} times`);
    return parts.join(here);
  }, shippedText);
}
