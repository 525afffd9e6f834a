import { readText } from '../repository-files.js';

/** What ships, and what stands there in a test. */
export type Replacements = readonly (readonly [shipped: string, here: string])[];

/** A file of `deploy/gateways` as it ships. */
export function shippedFile(name: string): string {
  return readText(`deploy/gateways/${name}`);
}

/** The same in other surroundings. Each text that is replaced has to be there once. */
export function fileHere(name: string, replacements: Replacements): string {
  return replacements.reduce((text, [shipped, here]) => {
    const parts = text.split(shipped);
    if (parts.length !== 2) throw new Error(`${name} has ${shipped} ${parts.length - 1} times`);
    return parts.join(here);
  }, shippedFile(name));
}
