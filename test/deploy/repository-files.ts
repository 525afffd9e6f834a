import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { parse } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A file of the project as text, by its path from the root. */
export function readText(path: string): string {
  return readFileSync(ROOT + path, 'utf8');
}

/** A parsed file of YAML or JSON, by its path from the root. */
export function readData(path: string): unknown {
  return parse(readText(path));
}

/** The fields of `package.json` that tests compare with other files. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
}

export function readManifest(): Manifest {
  return readData('package.json') as Manifest;
}
