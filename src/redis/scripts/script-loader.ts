import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A script's text, and the SHA-1 by which Redis knows it. */
export interface Script {
  readonly name: string;
  readonly text: string;
  readonly sha1: string;
}

/** `--@include lib/window` on a line of its own. */
const INCLUDE = /^--@include (\S+)$/;

/** Beside `src` and beside `dist` alike. */
const LUA_FOLDER = new URL('../../../lua/', import.meta.url);

/**
 * Reads `lua/<name>.lua`. Inserts each fragment that it includes, directly or indirectly, at the first line that
 * includes it.
 * @param replacements texts in place of files, by fragment name. Tests control time with them.
 * @throws Error if a fragment includes itself, directly or indirectly, or a file is missing
 */
export function loadScript(
  name: string,
  replacements: Readonly<Record<string, string>> = {},
): Script {
  const included = new Set<string>();

  const expand = (fragment: string, includedBy: readonly string[]): string => {
    if (includedBy.includes(fragment)) {
      throw new Error(`lua include cycle: ${[...includedBy, fragment].join(' > ')}`);
    }
    if (included.has(fragment)) return '';
    included.add(fragment);
    const text =
      replacements[fragment] ?? readFileSync(new URL(`${fragment}.lua`, LUA_FOLDER), 'utf8');
    return text
      .split('\n')
      .map((line) => {
        const include = INCLUDE.exec(line)?.[1];
        return include === undefined ? line : expand(include, [...includedBy, fragment]);
      })
      .join('\n');
  };

  const text = expand(name, []);
  return { name, text, sha1: createHash('sha1').update(text).digest('hex') };
}
