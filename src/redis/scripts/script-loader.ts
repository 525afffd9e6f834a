import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A script in the two forms that Redis takes, made from the same files. */
export interface Script {
  readonly name: string;
  /** For EVAL. */
  readonly text: string;
  /** Of the text, for EVALSHA. */
  readonly sha1: string;
  readonly library: Library;
}

/** A library of Redis Functions with one function, which has the library's name. */
export interface Library {
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

/** `--@include lib/window` on a line of its own. */
const INCLUDE = /^--@include (\S+)$/;
/** `--@include-when-called lib/checks decide`: the fragment, and the one function of it that the script calls. */
const INCLUDE_WHEN_CALLED = /^--@include-when-called (\S+) (\w+)$/;
/** What each script defines. */
const RUN = 'run';
const DIGITS_IN_NAME = 16;

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
  flags: readonly FunctionFlag[] = [],
): Script {
  const text = `${expand(name, replacements, inFunction)}\nreturn ${RUN}(KEYS, ARGV)\n`;
  const body = expand(name, replacements, atOnce);
  return { name, text, sha1: sha1Of(text), library: libraryOf(name, body, flags) };
}

/** How an included fragment whose function is rarely called is written. */
type WriteFunction = (text: string, name: string) => string;

/** A function of its own also has local variables of its own. Lua allows 200 in each. */
const atOnce: WriteFunction = (text, name) => `local ${name} = (function()
${text}
  return ${name}
end)()`;

/**
 * Redis defines the functions of a script again in each EVALSHA, which takes as long as some checks. Those that are
 * rarely called are defined by their first call.
 */
const inFunction: WriteFunction = (text, name) => `local define_${name}
local function ${name}(...)
  ${name} = define_${name}()
  return ${name}(...)
end
function define_${name}()
${text}
  return ${name}
end`;

function expand(
  name: string,
  replacements: Readonly<Record<string, string>>,
  writeFunction: WriteFunction,
): string {
  const included = new Set<string>();
  const insert = (fragment: string, includedBy: readonly string[]): string => {
    if (includedBy.includes(fragment)) {
      throw new Error(`lua include cycle: ${[...includedBy, fragment].join(' > ')}`);
    }
    if (included.has(fragment)) return '';
    included.add(fragment);
    const text =
      replacements[fragment] ?? readFileSync(new URL(`${fragment}.lua`, LUA_FOLDER), 'utf8');
    const path = [...includedBy, fragment];
    return text
      .split('\n')
      .map((line) => {
        const include = INCLUDE.exec(line)?.[1];
        if (include !== undefined) return insert(include, path);
        const [, whenCalled, called] = INCLUDE_WHEN_CALLED.exec(line) ?? [];
        if (whenCalled === undefined || called === undefined) return line;
        return writeFunction(insert(whenCalled, path), called);
      })
      .join('\n');
  };
  return insert(name, []);
}

function libraryOf(script: string, body: string, flags: readonly FunctionFlag[]): Library {
  const digest = sha1Of(`${body}${flags.join()}`).slice(0, DIGITS_IN_NAME);
  const name = `sluice_${script}_${digest}`;
  const flagList = flags.map((flag) => `'${flag}'`).join(', ');
  const registration = `redis.register_function{
  function_name = '${name}', callback = ${RUN}, flags = { ${flagList} }
}`;
  return { name, text: `#!lua name=${name}\n${body}\n${registration}\n` };
}

function sha1Of(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}
