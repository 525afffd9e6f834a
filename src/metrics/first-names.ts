/**
 * Returns a function that says whether a name is one of the first `most` names that it was asked about. The rules file may
 * change any number of times, with other names each time.
 */
export function firstNames(most: number): (name: string) => boolean {
  const names = new Set<string>();
  return (name) => {
    if (names.size < most) names.add(name);
    return names.has(name);
  };
}
