import { startApp } from './app.js';
import { parseSettings, SettingsError } from './config.js';
import { createLogger } from './logger.js';

async function main(): Promise<void> {
  const settings = parseSettings(process.env);
  const logger = createLogger(settings.LOG_LEVEL);
  const app = await startApp(settings, logger);

  const hurry = new AbortController();
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) {
      hurry.abort();
      return;
    }
    stopping = true;
    logger.info({ signal }, 'stopping');
    app.stop(settings.SHUTDOWN_GRACE_MILLIS, hurry.signal).then(
      () => {
        logger.info('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'stopped with an error');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

try {
  await main();
} catch (error) {
  // What an operator can mend is one line; what only we can mend keeps its stack.
  const isOperators = error instanceof SettingsError || (error as { syscall?: string }).syscall;
  console.error(isOperators ? (error as Error).message : error);
  process.exit(1);
}
