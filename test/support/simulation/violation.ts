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
