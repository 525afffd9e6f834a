import { readdirSync } from 'node:fs';

import {
  type FunctionFlag,
  loadScript,
  type Replacements,
} from '../../src/redis/scripts/script-loader.js';
import { FORM } from './redis-user.js';

interface Server {
  command(name: string, ...args: string[]): Promise<unknown>;
}

const LUA_FOLDER = new URL('../../lua/', import.meta.url);
/** Those of each script are in `src/redis/scripts/scripts.ts`. */
const FLAGS: readonly (readonly FunctionFlag[])[] = [[], ['no-writes'], ['allow-cross-slot-keys']];

/** The files in `lua` by their names without `.lua`, fragments included. */
export function luaFiles(): string[] {
  return readdirSync(LUA_FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .map((file) => file.slice(0, -'.lua'.length));
}

/**
 * The names of Sluice's scripts that a server knows: of the libraries that it has, or of the texts in its script cache.
 * @param replacements of another version, see {@link loadScript}
 */
export async function knownScripts(server: Server, replacements?: Replacements): Promise<string[]> {
  const names = luaFiles().filter((file) => !file.includes('/'));
  if (FORM === 'script') {
    const digests = names.map((name) => loadScript(name, replacements).sha1);
    const exist = (await server.command('SCRIPT', 'EXISTS', ...digests)) as number[];
    return names.filter((_, i) => exist[i] === 1);
  }
  const reply = (await server.command('FUNCTION', 'LIST')) as unknown[][];
  const libraries = reply.map((library) => library[library.indexOf('library_name') + 1]);
  return names.filter((name) =>
    FLAGS.some((flags) => libraries.includes(loadScript(name, replacements, flags).library.name)),
  );
}
