import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

import type { Scripts } from './schedule.js';
import { simulatedScripts } from './stored-key.js';

const LUA = new URL('../../../lua/', import.meta.url);

/**
 * The scripts with a function of a fragment that has another body. In it, `original` is the function as it was.
 * @param place `<path in lua, without .lua>.<name of the function>`
 * @throws Error unless there is such a function
 */
export function faultyScripts(place: string, body: string): Scripts {
  const [fragment = '', name = ''] = place.split('.');
  const text = readFileSync(new URL(`${fragment}.lua`, LUA), 'utf8');
  const table = basename(fragment).replaceAll('-', '_');
  const end = `return ${table}\n`;
  const declaration = new RegExp(`^function ${table}([.:])${name}\\((.*)\\)$`, 'm').exec(text);
  if (!declaration || !text.endsWith(end)) throw new Error(`lua/${fragment}.lua has no ${name}`);
  const [, separator, parameters = ''] = declaration;
  const all = separator === ':' ? ['self', parameters].filter(Boolean).join(', ') : parameters;
  const fault = `do
  local original = ${table}.${name}
  ${table}.${name} = function(${all})
    ${body}
  end
end
`;
  return simulatedScripts({ [fragment]: text.slice(0, -end.length) + fault + end });
}
