import { setTimeout as sleep } from 'node:timers/promises';

import type { Connection } from './connection.js';
import type { InterruptedError } from './errors.js';
import { textOf } from './failures.js';
import { printJson } from './output.js';
import { type Overview, readOverview } from './overview.js';
import { Screen } from './screen.js';
import type { Signals } from './signals.js';
import { tableOf } from './top-table.js';

/** Of the screen: the two lines above the table, its head, and two lines that may follow it. */
const OTHER_LINES = 5;

/**
 * Shows the keys again and again, until a person ends it.
 * @throws SluiceError as `readOverview` if nothing was read yet; InterruptedError if a signal other than Ctrl-C
 * ends it; OutputError
 */
export async function showLive(
  connection: Connection,
  intervalMillis: number,
  isJson: boolean,
  signals: Signals,
): Promise<void> {
  const { interruption } = signals;
  let overview = await readOverview(connection, interruption);
  const screen = isJson
    ? undefined
    : new Screen(() => {
        signals.interrupt('SIGINT');
      });
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
