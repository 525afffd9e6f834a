import { accessSync, constants } from 'node:fs';
import { delimiter, dirname } from 'node:path';

/** Where the programs of a system are. */
const OF_SYSTEM = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/**
 * The PATH for the children of tests: this Node and the system's programs first. Of the user's folders only those that
 * can be searched: in another one, a program that is not found would count as one that must not be run.
 */
export const CHILD_PATH = [
  ...new Set([
    dirname(process.execPath),
    ...OF_SYSTEM,
    ...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/')),
  ]),
]
  .filter(canBeSearched)
  .join(delimiter);

function canBeSearched(folder: string): boolean {
  try {
    accessSync(folder, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
