import { readFileSync } from 'node:fs';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The cells of each row of the README's tables with this header, all of them together. */
export function readmeTable(header: readonly string[]): string[][] {
  const lines = README.split('\n');
  const rows: string[][] = [];
  for (const [i, line] of lines.entries()) {
    if (cellsOf(line).join() !== header.join()) continue;
    const below = lines.slice(i + 2);
    const end = below.findIndex((row) => !row.startsWith('|'));
    rows.push(...below.slice(0, end).map(cellsOf));
  }
  if (rows.length === 0) throw new Error(`README.md has no table of ${header.join(', ')}`);
  return rows;
}

function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
}
