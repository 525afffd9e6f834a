import { type DestinationStream, type LevelWithSilent, type Logger, pino } from 'pino';

/** Structured lines on standard output. The contract requires the level as a word. */
export function createLogger(level: LevelWithSilent, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describe },
  };
  return destination ? pino(options, destination) : pino(options);
}

/**
 * An error without the properties that libraries attach to it. ioredis attaches the command that failed, and
 * the arguments of an AUTH include the password.
 */
function describe(error: unknown): object {
  const { type, message, stack } = pino.stdSerializers.err(error as Error);
  const code = error instanceof Error && 'code' in error ? { code: error.code } : {};
  return { type, message, stack, ...code };
}
