import { readPage } from './pages.js';

/** The cells of each row in all tables of a page with this header. */
export function tableRows(page: string, header: readonly string[]): string[][] {
  const lines = readPage(page).split('\n');
  const rows: string[][] = [];
  for (const [i, line] of lines.entries()) {
    if (cellsOf(line).join() !== header.join()) continue;
    const below = lines.slice(i + 2);
    const end = below.findIndex((row) => !row.startsWith('|'));
    rows.push(...below.slice(0, end).map(cellsOf));
  }
  if (rows.length === 0) throw new Error(`${page} has no table of ${header.join(', ')}`);
  return rows;
}

/** The text between a cell's first backticks; undefined if the cell does not start with one. */
export function inBackticks(cell: string | undefined): string | undefined {
  return /^`([^`]+)`/.exec(cell ?? '')?.[1];
}

function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
}
