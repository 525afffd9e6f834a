import { readFileSync } from 'node:fs';

/** Beside `src`, as beside `dist`. */
const PACKAGE = new URL('../../package.json', import.meta.url);

export function packageVersion(): string {
  return (JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }).version;
}
