import { readText } from '../repository-files.js';

/** Shipped texts, and their replacements in a test. */
export type Replacements = readonly (readonly [shipped: string, here: string])[];

/** A file of `deploy/gateways` as it ships. */
export function shippedFile(name: string): string {
  return readText(`deploy/gateways/${name}`);
}

/** A shipped file with replacements. It must have each replaced text once. */
export function fileHere(name: string, replacements: Replacements): string {
  return replacements.reduce((text, [shipped, here]) => {
    const parts = text.split(shipped);
    if (parts.length !== 2) throw new Error(`${name} has ${shipped} ${parts.length - 1} times`);
    return parts.join(here);
  }, shippedFile(name));
}
