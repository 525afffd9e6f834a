import { type BusyKey, type Overview, shownState } from './overview.js';
import { printable } from './printable.js';

/** Right after the key come texts, then numbers, which are aligned on the right. */
const HEAD = ['KEY', 'STATE', 'USED/MAX', 'WAITING', 'DENIED/S'];
const TEXT_COLUMNS = 2;
const GAP = '  ';

/**
 * The lines of a table of keys.
 * @param mostRows how many keys are shown; a last line says how many are not
 */
export function tableOf({ keys, isComplete }: Overview, mostRows: number): string[] {
  const remark = isComplete ? [] : ['not all keys are known'];
  if (keys.length === 0) return ['no key is paused, denied or waited for', ...remark];
  const rows = [HEAD, ...keys.slice(0, mostRows).map(rowOf)];
  const widths = HEAD.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const more = keys.length > mostRows ? [`${keys.length - mostRows} more`] : [];
  const lines = rows.map((row) => row.map((cell, i) => padded(cell, widths[i] ?? 0, i)).join(GAP));
  return [...lines, ...more, ...remark];
}

function rowOf(row: BusyKey): string[] {
  const { key, used, max, waiting, deniedPerSecond } = row;
  const shown = [`${used}/${max}`, `${waiting}`, deniedPerSecond.toFixed(1)];
  return [printable(key), shownState(row), ...shown];
}

function padded(cell: string, width: number, column: number): string {
  return column < TEXT_COLUMNS ? cell.padEnd(width) : cell.padStart(width);
}
