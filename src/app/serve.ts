import { createLogger, openLogOutput } from '../common/logger.js';
import { keepTickShape } from '../common/ticks.js';
import { warnOfMisspeltSettings } from '../config/misspelt-settings.js';
import type { Settings } from '../config/settings.js';
import { type App, startApp } from './start-app.js';

/** The longest an open socket may keep the process alive after a stop. */
const EXIT_TIMEOUT_MILLIS = 3000;
/** The longest that the last lines of the log may take. */
const FLUSH_MILLIS = 1000;

/** Runs the service in this process, until a signal stops it. Returns when it serves. */
export async function serve(settings: Settings): Promise<void> {
  // Without a listener, the signal at the limit of `ulimit -f` ends the process.
  process.on('SIGXFSZ', () => undefined);
  const output = openLogOutput();
  const logger = createLogger(settings.LOG_LEVEL, output);
  output.onRecovery = (lines) => {
    logger.warn({ lines }, 'log lines were dropped, since they could not be written');
  };
  warnOfMisspeltSettings(process.env, logger);
  void keepTickShape();

  const hurry = new AbortController();
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    logger.info({ signal }, 'stopping');
    try {
      await (await started).stop(settings.SHUTDOWN_GRACE_MILLIS, hurry.signal);
      logger.info('stopped');
    } catch (error) {
      logger.error({ err: error }, 'stopped with an error');
      process.exitCode = 1;
    }
    if (!(await output.flush(FLUSH_MILLIS))) process.exit();
    // The process ends by itself, unless a socket is still open.
    setTimeout(() => process.exit(), EXIT_TIMEOUT_MILLIS).unref();
  };
  let stopping: Promise<void> | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) hurry.abort();
    else stopping = stop(signal);
  };
  // A signal during the start also has to stop the parts in order.
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  // Without a rules file, SIGHUP ends the process by default, for example when its terminal is closed.
  if (settings.CONFIG_FILE !== undefined) {
    process.on('SIGHUP', () => {
      void started.then((app) => app.reloadRules()).catch(() => undefined);
    });
  }

  const started: Promise<App> = startApp(settings, logger, process.env, output);
  await started;
}
