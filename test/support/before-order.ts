import { readFileSync } from 'node:fs';

const LUA = new URL('../../lua/', import.meta.url);

/** The fragment of a file of `lua`, with other texts in it. Each must be there once. */
function fragment(
  file: string,
  ...changes: readonly (readonly [here: string, there: string])[]
): Record<string, string> {
  let text = readFileSync(new URL(`${file}.lua`, LUA), 'utf8');
  for (const [here, there] of changes) {
    if (text.split(here).length !== 2) throw new Error(`${file}.lua has not one ${here}`);
    text = text.replace(here, there);
  }
  return { [file]: text };
}

/** Scripts that know of no order of holds, as those of versions before it. They write `more` as 1. */
export function beforeOrder(): Record<string, string> {
  return {
    ...fragment('lib/holds', ['FEW = 50', 'FEW = math.huge']),
    ...fragment('lib/state', ["values[6] == '2'", 'false']),
  };
}

/** Scripts that keep the order from the second hold of a key on. */
export function orderOfFew(): Record<string, string> {
  return fragment('lib/holds', ['FEW = 50', 'FEW = 1']);
}
