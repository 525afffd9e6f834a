import { diag, DiagLogLevel } from '@opentelemetry/api';

import { FrequentLog } from '../../common/frequent-log.js';
import type { TracingParts } from '../tracing.js';

/**
 * Logs OpenTelemetry's warnings, one line a second at most: a certificate that can't be read, spans that are
 * dropped from a full queue, spans that the collector has rejected.
 */
export function logNotices({ clock, logger }: Pick<TracingParts, 'clock' | 'logger'>): {
  close(): void;
} {
  const log = new FrequentLog<string>(clock, (notices) => {
    logger.warn({ notices }, 'OpenTelemetry');
  });
  const note = (...words: unknown[]): void => {
    log.note(words.map(String).join(' '));
  };
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: note, warn: note, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return log;
}
