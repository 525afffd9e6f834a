import { readFileSync } from 'node:fs';

const LUA = new URL('../../lua/', import.meta.url);

/**
 * The value of a constant in a file of `lua`, a number or a text.
 * @param file its path in `lua`, without `.lua`
 * @throws Error unless the file has it once
 */
export function luaConstant(file: string, name: string): number | string {
  const text = readFileSync(new URL(`${file}.lua`, LUA), 'utf8');
  const found = [...text.matchAll(new RegExp(`\\b${name} = (?:(-?[\\d.]+)|'(.*)')`, 'g'))];
  const [[, number, quoted] = []] = found;
  if (found.length !== 1) throw new Error(`lua/${file}.lua has ${name} ${found.length} times`);
  return quoted ?? Number(number);
}

/** The same for a number. */
export function luaNumber(file: string, name: string): number {
  return Number(luaConstant(file, name));
}
