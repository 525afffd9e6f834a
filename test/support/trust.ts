/** The authorities that the tests' own clients believe, as PEM. */
export const trusted: string[] = [];

/** From now on those clients believe a server whose certificate is of this authority. */
export function trust(ca: string): void {
  trusted.push(ca);
}
