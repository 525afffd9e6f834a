import { setTimeout as sleep } from 'node:timers/promises';

import type { Invocation } from './arguments.js';
import { type Connection, connectionOf } from './connection.js';
import { CommandLineError, EXIT, type InterruptedError, PROGRAM } from './errors.js';
import { exitCodeOf, textOf } from './failures.js';
import { print, printable, printJson, sizeOf, writeLine } from './messages.js';
import { type BusyKey, type Overview, readOverview, shownState } from './overview.js';
import { Signals } from './signals.js';

const DEFAULT_INTERVAL_MILLIS = 2000;

export async function top({ values }: Invocation): Promise<number> {
  const { once, json = false, interval = DEFAULT_INTERVAL_MILLIS } = values;
  if (interval === 0) throw new CommandLineError('--interval must be above 0');
  const connection = connectionOf(values);
  const signals = new Signals();
  try {
    if (process.stdout.isTTY && !once) {
      await showLive(connection, interval, json, signals);
    } else {
      const overview = await readOverview(connection, signals.interruption);
      if (json) await printJson(overview);
      else await print(...tableOf(overview, Infinity));
    }
    return EXIT.OK;
  } catch (error) {
    if (error instanceof CommandLineError) throw error;
    const code = exitCodeOf(error);
    writeLine(`${PROGRAM}: ${textOf(error, connection.urls)}`);
    return code;
  } finally {
    signals.release();
  }
}

/** Of the screen: the two lines above the table, its head, and two lines that may follow it. */
const OTHER_LINES = 5;

/**
 * Shows the keys again and again, until a person ends it.
 * @throws SluiceError as `readOverview` if nothing was read yet; InterruptedError if a signal other than Ctrl-C
 * ends it; OutputError
 */
async function showLive(
  connection: Connection,
  intervalMillis: number,
  isJson: boolean,
  signals: Signals,
): Promise<void> {
  const { interruption } = signals;
  let overview = await readOverview(connection, interruption);
  const screen = isJson ? undefined : new Screen(() => signals.interrupt('SIGINT'));
  let failure = '';
  try {
    for (;;) {
      if (screen) screen.draw(linesOf(overview, failure, screen.rows));
      else if (failure === '') await printJson(overview);
      await sleep(intervalMillis, undefined, { signal: interruption });
      try {
        overview = await readOverview(connection, interruption);
        failure = '';
      } catch (error) {
        failure = textOf(error, connection.urls);
      }
    }
  } catch (error) {
    if (!interruption.aborted) throw error;
    const { signal } = interruption.reason as InterruptedError;
    if (signal !== 'SIGINT') throw interruption.reason;
  } finally {
    screen?.close();
  }
}

function linesOf(overview: Overview, failure: string, rows: number): string[] {
  const time = new Date().toLocaleTimeString('en-GB');
  const replicas = `${overview.replicas} ${overview.replicas === 1 ? 'replica' : 'replicas'}`;
  const head = failure === '' ? `${time}  ${replicas}  q ends this` : failure;
  return [head, '', ...tableOf(overview, Math.max(1, rows - OTHER_LINES))];
}

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_TO_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const CTRL_C = '\u0003';

/** The whole terminal, until `close`. */
class Screen {
  /** @param onEnd is called when a person ends it, by q or Ctrl-C */
  constructor(private readonly onEnd: () => void) {
    process.stdout.write(ENTER);
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true);
    process.stdin.setEncoding('utf8').on('data', this.#read);
  }

  get rows(): number {
    return sizeOf(process.stdout).rows;
  }

  /** Replaces what is shown. Each line is cut at the right edge. */
  draw(lines: readonly string[]): void {
    const { columns, rows } = sizeOf(process.stdout);
    const shown = lines
      .slice(0, rows)
      .map((line) => printable(line).slice(0, columns) + CLEAR_TO_LINE_END);
    process.stdout.write(HOME + shown.join('\r\n') + CLEAR_BELOW);
  }

  close(): void {
    process.stdout.write(LEAVE);
    if (!process.stdin.isTTY) return;
    process.stdin.off('data', this.#read).pause().setRawMode(false);
  }

  readonly #read = (typed: string): void => {
    if (/q/i.test(typed) || typed.includes(CTRL_C)) this.onEnd();
  };
}

/** Right after the key come texts, then numbers, which are aligned on the right. */
const HEAD = ['KEY', 'STATE', 'USED/MAX', 'WAITING', 'DENIED/S'];
const TEXT_COLUMNS = 2;
const GAP = '  ';

/**
 * The lines of a table of keys.
 * @param mostRows how many keys are shown; a last line says how many are not
 */
function tableOf({ keys, isComplete }: Overview, mostRows: number): string[] {
  const remark = isComplete ? [] : ['not all keys are known'];
  if (keys.length === 0) return ['no key is paused, denied or waited for', ...remark];
  const rows = [HEAD, ...keys.slice(0, mostRows).map(rowOf)];
  const widths = HEAD.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const padded = (cell: string, i: number): string =>
    i < TEXT_COLUMNS ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0);
  const more = keys.length > mostRows ? [`${keys.length - mostRows} more`] : [];
  const lines = rows.map((row) => row.map(padded).join(GAP));
  return [...lines, ...more, ...remark];
}

function rowOf(row: BusyKey): string[] {
  const { key, used, max, waiting, deniedPerSecond } = row;
  const shown = [`${used}/${max}`, `${waiting}`, deniedPerSecond.toFixed(1)];
  return [printable(key), shownState(row), ...shown];
}
