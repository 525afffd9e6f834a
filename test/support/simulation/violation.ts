/** Rules that the product does not keep yet. What breaks one of them fails no run: take it out to see it found. */
const NOT_KEPT_YET: ReadonlySet<string> = new Set(['nobody waits for nothing']);

/** @throws Violation where the product is to keep this rule */
export function violate(rule: string, detail: string): void {
  if (!NOT_KEPT_YET.has(rule)) throw new Violation(rule, detail);
}

/** Something that must hold, and did not. */
export class Violation extends Error {
  override readonly name = 'Violation';

  /** @param rule which of the invariants, in a few words that stay the same from case to case */
  constructor(
    readonly rule: string,
    detail: string,
  ) {
    super(`${rule}: ${detail}`);
  }
}
