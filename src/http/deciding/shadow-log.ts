import type { Logger } from 'pino';

/** Where refusals are logged, those that a limit in the shadow would have made are, too. */
export function logShadow(log: Logger, key: string, reason: string): void {
  log.info({ key, reason }, 'would be denied; passes, since the rule is in the shadow');
}
