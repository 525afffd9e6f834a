import type { Logger } from 'pino';

import { createLogger } from '../../src/common/logger.js';
import type { LogLine } from './replica-process.js';

/** A logger, and its lines so far. */
export interface RecordedLog {
  readonly logger: Logger;
  readonly lines: readonly LogLine[];
  /** Only the messages. */
  readonly messages: readonly unknown[];
}

export function recordLog(level: Parameters<typeof createLogger>[0] = 'info'): RecordedLog {
  const lines: LogLine[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as LogLine);
  return {
    logger: createLogger(level, { write }),
    lines,
    get messages() {
      return lines.map(({ msg }) => msg);
    },
  };
}
