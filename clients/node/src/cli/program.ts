import { readFileSync } from 'node:fs';

export const PROGRAM = 'sluice-client';

/** Beside the folder with the compiled files. */
const PACKAGE = new URL('../../package.json', import.meta.url);

/** The version of the package. */
export function programVersion(): string {
  return (JSON.parse(readFileSync(PACKAGE, 'utf8')) as { readonly version: string }).version;
}
