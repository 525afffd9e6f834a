import { parseArgs } from 'node:util';

import { stop } from '../lib/run.mjs';
import { MOST_CLIENTS } from './setting.mjs';

const HELP = `npm run demo -- [options]

  --window-millis N  the length of a window (1500)
  --clients N        how many clients wait (${MOST_CLIENTS})
  --record FILE      writes what happens to a file, for npm run demo:picture
`;

/**
 * The options of this process. The option `--help` prints the help, and an invalid option prints an error. Both end
 * this process.
 */
export function demoOptions() {
  const given = parsed();
  if (given.help) {
    console.log(HELP);
    process.exit(0);
  }
  return {
    // All clients have to come in the first window.
    windowMillis: wholeNumber(given, 'window-millis', 750, 60_000),
    clients: wholeNumber(given, 'clients', 9, MOST_CLIENTS),
    recordFile: given.record,
  };
}

function parsed() {
  try {
    return parseArgs({
      options: {
        'window-millis': { type: 'string', default: '1500' },
        clients: { type: 'string', default: String(MOST_CLIENTS) },
        record: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    return stop(error.message);
  }
}

function wholeNumber(given, name, least, most) {
  const value = Number(given[name]);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  return stop(`--${name}: got "${given[name]}", takes a whole number from ${least} to ${most}`);
}
