/** The authorities that the tests' own clients trust, as PEM. */
export const trusted: string[] = [];

/** From now on the tests' clients trust certificates of this authority. */
export function trust(ca: string): void {
  trusted.push(ca);
}
