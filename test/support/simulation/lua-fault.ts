import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

import type { Scripts } from './schedule.js';
import { simulatedScripts } from './stored-key.js';

const LUA = new URL('../../../lua/', import.meta.url);

/**
 * The scripts with a function of a file that has another body. In it, `original` is the function as it was.
 * @param place `<path in lua, without .lua>.<name of the function, which may be a local one>`
 * @throws Error unless there is such a function
 */
export function faultyScripts(place: string, body: string): Scripts {
  const [file = '', name = ''] = place.split('.');
  const text = readFileSync(new URL(`${file}.lua`, LUA), 'utf8');
  const table = basename(file).replaceAll('-', '_');
  const declared = `^(?:local function |function ${table}([.:]))${name}\\((.*)\\)\n[^]*?^end\n`;
  const declaration = new RegExp(declared, 'm').exec(text);
  if (!declaration) throw new Error(`lua/${file}.lua has no ${name}`);
  const [whole, separator, parameters = ''] = declaration;
  const all = separator === ':' ? ['self', parameters].filter(Boolean).join(', ') : parameters;
  const target = separator === undefined ? name : `${table}.${name}`;
  const fault = `do
  local original = ${target}
  ${target} = function(${all})
    ${body}
  end
end
`;
  const end = declaration.index + whole.length;
  return simulatedScripts({ [file]: text.slice(0, end) + fault + text.slice(end) });
}
