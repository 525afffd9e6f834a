import { type DestinationStream, type Logger, pino } from 'pino';

import type { Settings } from './config.js';

/** Structured lines on standard output; the level is a word, as the contract has it. */
export function createLogger(
  level: Settings['LOG_LEVEL'],
  destination?: DestinationStream,
): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return destination ? pino(options, destination) : pino(options);
}
