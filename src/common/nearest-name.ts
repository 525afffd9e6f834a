import { closestMatch } from 'leven';

/**
 * The name that is most like a given one, to name in an error. Upper and lower case are the same, and so are
 * `maxRequests` and `max_requests`.
 * @param maxDistance the most letters that may differ; any number if it is left out
 */
export function nearestName(
  given: string,
  names: readonly string[],
  maxDistance?: number,
): string | undefined {
  const byLetters = new Map(names.map((name) => [lettersOf(name), name]));
  const options = maxDistance === undefined ? undefined : { maxDistance };
  const nearest = closestMatch(lettersOf(given), [...byLetters.keys()], options);
  return nearest === undefined ? undefined : byLetters.get(nearest);
}

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z\d]/g, '');
}
