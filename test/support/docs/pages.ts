import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const IGNORED_FOLDERS = ['node_modules', 'dist', '.git', 'coverage'];

/** All Markdown pages of the project, by their paths from its root. */
export function pages(folder = ROOT): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return IGNORED_FOLDERS.includes(entry.name) ? [] : pages(path);
    return entry.name.endsWith('.md') ? [relative(ROOT, path)] : [];
  });
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}
