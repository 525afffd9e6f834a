import { type Replacements, withReplacements } from '../replacements.js';
import { readText } from '../repository-files.js';

export type { Replacements };

/** A file of `deploy/gateways` as it ships. */
export function shippedFile(name: string): string {
  return readText(`deploy/gateways/${name}`);
}

/** A shipped file with replacements. It must have each replaced text once. */
export function fileHere(name: string, replacements: Replacements): string {
  return withReplacements(name, shippedFile(name), replacements);
}
