import { readFileSync } from 'node:fs';

const LUA = new URL('../../lua/', import.meta.url);

/**
 * The fragment of a file of `lua`, with other texts in it.
 * @param file its path in `lua`, without `.lua`
 * @returns the text by that path
 * @throws Error unless each text is there once: another line could mean something else
 */
export function editedFragment(
  file: string,
  ...changes: readonly (readonly [here: string, there: string])[]
): Record<string, string> {
  let text = readFileSync(new URL(`${file}.lua`, LUA), 'utf8');
  for (const [here, there] of changes) {
    const count = text.split(here).length - 1;
    if (count !== 1) throw new Error(`lua/${file}.lua says ${count} times: ${here}`);
    text = text.replace(here, there);
  }
  return { [file]: text };
}
