import type { Invocation } from './arguments.js';
import { connectionOf } from './connection.js';
import { CommandLineError } from './errors.js';
import { EXIT } from './exit-codes.js';
import { exitCodeOf, textOf } from './failures.js';
import { showLive } from './live.js';
import { print, printJson, writeLine } from './output.js';
import { readOverview } from './overview.js';
import { PROGRAM } from './program.js';
import { Signals } from './signals.js';
import { tableOf } from './top-table.js';

const DEFAULT_INTERVAL_MILLIS = 2000;

/**
 * `top`: shows the keys that are paused, denied or waited for; on a terminal until a person ends it.
 * @returns the exit code
 * @throws CommandLineError if the options are wrong
 */
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
