import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import type { Redis } from 'ioredis';

import { UnderWay } from '../../common/under-way.js';
import type { Connections } from '../connections/connections.js';

/** A script in the two forms that Redis takes, made from the same files. */
export interface Script {
  readonly name: string;
  /** For EVAL. */
  readonly text: string;
  /** Of the text, for EVALSHA. */
  readonly sha1: string;
  readonly library: Library;
  readonly mayWrite: boolean;
}

/** A library of Redis Functions with one function, which has the library's name. */
interface Library {
  /** With a digest of the text, so that versions of Sluice with different texts share a Redis. */
  readonly name: string;
  /** For FUNCTION LOAD. */
  readonly text: string;
}

/**
 * The flags of a function: https://redis.io/docs/latest/develop/programmability/lua-api/#script-flags
 * - `no-writes`: it also runs while Redis accepts no writes
 * - `allow-cross-slot-keys`: in a cluster its names may be in several slots. Scripts for EVALSHA always may.
 */
export type FunctionFlag = 'no-writes' | 'allow-cross-slot-keys';

/** `local window = require 'lib/window'` on a line of its own. */
const REQUIRE = /^local (\w+) = (require|require_when_called) '(\S+)'$\n?/gm;
/** What each script defines. */
const RUN = 'run';
const DIGITS_IN_NAME = 16;

/** Beside `src` and beside `dist` alike. */
const LUA_FOLDER = new URL('../../../lua/', import.meta.url);

/** Texts instead of files, by fragment name. Tests control time with them. */
export type Replacements = Readonly<Record<string, string>>;

const NO_REPLACEMENTS: Replacements = {};
/** By replacements, the scripts made with them. Limiters of one process share them. */
const loaded = new WeakMap<Replacements, Map<string, Script>>();

/**
 * Reads `lua/<name>.lua`, and puts the fragments that it requires, directly or indirectly, before it.
 * Makes a script once for the same replacements.
 * @throws Error if a fragment requires itself, directly or indirectly, or a file is missing
 */
export function loadScript(
  name: string,
  replacements = NO_REPLACEMENTS,
  flags: readonly FunctionFlag[] = [],
): Script {
  const scripts = loaded.get(replacements) ?? new Map<string, Script>();
  loaded.set(replacements, scripts);
  const id = [name, ...flags].join();
  const script = scripts.get(id) ?? makeScript(name, replacements, flags);
  scripts.set(id, script);
  return script;
}

function makeScript(
  name: string,
  replacements: Replacements,
  flags: readonly FunctionFlag[],
): Script {
  const text = `${assemble(name, replacements, writeWhenCalled)}\nreturn ${RUN}(KEYS, ARGV)\n`;
  const body = assemble(name, replacements, writeAtOnce);
  const mayWrite = !flags.includes('no-writes');
  return { name, text, sha1: hash('sha1', text), library: libraryOf(name, body, flags), mayWrite };
}

/** Writes the definition of a local variable for the table that a fragment returns. */
const writeAtOnce = (variable: string, text: string): string => `local ${variable} = (function()
${text}
end)()`;

/**
 * Redis defines the functions of a script again in each EVALSHA, which takes as long as some checks. Those of a fragment
 * that is `require_when_called` are defined when the first of them is called.
 */
const writeWhenCalled: typeof writeAtOnce = (variable, text) => `local ${variable}
${variable} = setmetatable({}, { __index = function(_, name)
${variable} = (function()
${text}
end)()
return ${variable}[name]
end })`;

/**
 * Each fragment becomes a local variable of the script, defined once, before what requires it. Its text is in a function of
 * its own, since Lua allows a function 200 local variables.
 */
function assemble(
  script: string,
  replacements: Replacements,
  writeLate: typeof writeAtOnce,
): string {
  const written = new Set<string>();
  /** @returns the file's own lines. Fragments that it requires go to `before`, unless they are written already. */
  const ownLines = (name: string, requiredBy: readonly string[], before: string[]): string => {
    const path = [...requiredBy, name];
    const replacement = replacements[name];
    const { required, own } = replacement === undefined ? readFragment(name) : parse(replacement);
    const late: (() => void)[] = [];
    for (const [, variable = '', how, fragment = ''] of required) {
      if (path.includes(fragment)) {
        throw new Error(`lua require cycle: ${[...path, fragment].join(' > ')}`);
      }
      if (how === 'require') {
        if (written.has(fragment)) continue;
        written.add(fragment);
        const lines = ownLines(fragment, path, before);
        before.push(writeAtOnce(variable, lines));
      } else {
        // Last, since what others require as well has to be outside.
        late.push(() => {
          const inside: string[] = [];
          const lines = ownLines(fragment, path, inside);
          before.push(writeLate(variable, [...inside, lines].join('\n')));
        });
      }
    }
    for (const write of late) write();
    return own;
  };
  const before: string[] = [];
  const lines = ownLines(script, [], before);
  return [...before, lines].join('\n');
}

interface Fragment {
  readonly required: readonly RegExpExecArray[];
  /** The text without the lines that require. */
  readonly own: string;
}

/** Each is in many scripts. */
const fragments = new Map<string, Fragment>();

function readFragment(name: string): Fragment {
  const fragment =
    fragments.get(name) ?? parse(readFileSync(new URL(`${name}.lua`, LUA_FOLDER), 'utf8'));
  fragments.set(name, fragment);
  return fragment;
}

function parse(text: string): Fragment {
  return { required: [...text.matchAll(REQUIRE)], own: text.replaceAll(REQUIRE, '') };
}

function libraryOf(script: string, body: string, flags: readonly FunctionFlag[]): Library {
  const digest = hash('sha1', `${body}${flags.join()}`).slice(0, DIGITS_IN_NAME);
  const name = `sluice_${script}_${digest}`;
  const flagList = flags.map((flag) => `'${flag}'`).join(', ');
  const registration = `redis.register_function{
  function_name = '${name}', callback = ${RUN}, flags = { ${flagList} }
}`;
  return { name, text: `#!lua name=${name}\n${body}\n${registration}\n` };
}

/** Loads libraries of functions that a server lacks: at first, after FUNCTION FLUSH, a restart or a failover. */
export class LibraryLoader {
  /** By shard and library. */
  readonly #loading = new UnderWay<unknown>();

  constructor(private readonly connections: Pick<Connections, 'primaries'>) {}

  /**
   * Loads a library on all primaries, not only on the one that lacks it: while a slot moves, another primary than the
   * slot's may have answered. Calls that need it on the same shard share one load, so that no other primary gets the
   * text again for each of them.
   * @param shard of the call that needs the library
   * @returns when this shard has it. Rejects with the error of this shard.
   */
  async load(library: Library, shard: string): Promise<void> {
    const pair = pairOf(shard, library);
    if (!this.#loading.get(pair)) {
      for (const [other, primary] of this.connections.primaries()) {
        const loading = this.#loading.join(pairOf(other, library), () => loadOn(primary, library));
        // A shard that some call needs reports its failure to that call.
        loading.catch(() => undefined);
      }
    }
    await this.#loading.get(pair);
  }
}

function pairOf(shard: string, { name }: Library): string {
  return `${shard} ${name}`;
}

async function loadOn(primary: Redis, { text }: Library): Promise<void> {
  try {
    await primary.call('FUNCTION', 'LOAD', text);
  } catch (error) {
    // Another replica may have loaded it. Equal names are equal texts.
    const { message } = error as Error;
    if (!/^ERR Library '\w+' already exists/.test(message)) throw error;
  }
}
