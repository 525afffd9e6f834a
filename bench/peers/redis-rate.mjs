// redis_rate (github.com/go-redis/redis_rate): GCRA in Redis, by a script that a library for Go calls. The script is read
// from the library's file `lua.go`.
import { readFileSync } from 'node:fs';

/** It has no server. */
export const programs = {};

export const version = 'checkout';

/**
 * The script that decides one check.
 * @param {string} path of `lua.go`
 * @throws {Error} if the file has no such script
 */
export function scriptIn(path) {
  const [, script] =
    /\ballowN = redis\.NewScript\(`([^`]+)`\)/.exec(readFileSync(path, 'utf8')) ?? [];
  if (script === undefined) throw new Error(`${path} has no script allowN`);
  return script;
}
