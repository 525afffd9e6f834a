import { readFileSync } from 'node:fs';

import { closestMatch } from 'leven';

/** They could break a line, change the terminal, or show the text in another order. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** The text for a line of a terminal. What would not be seen as itself is written as `\u009b`. */
export function inOneLine(text: string): string {
  return text.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

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

/**
 * A path into a value as JavaScript writes it, such as `keys[2].window_millis`.
 * @param path of an issue of zod, for example; '' for the value itself
 */
export function pathText(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`));
  return text.join('').replace(/^\./, '');
}

/** Beside `src`, as beside `dist`. */
const PACKAGE = new URL('../../package.json', import.meta.url);

export function packageVersion(): string {
  return (JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }).version;
}
