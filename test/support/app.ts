import { Writable } from 'node:stream';

import { type App, startApp } from '../../src/app/start-app.js';
import { parseSettings } from '../../src/config/settings.js';
import { createLogger } from '../../src/common/logger.js';
import { type LogLine, TEST_SETTINGS } from './replica-process.js';
import { until } from './until.js';

/** The whole service inside the test's process, on a free port. */
export interface TestApp {
  readonly url: string;
  /** Of the admin port; throws where there is none. */
  readonly adminUrl: string;
  readonly log: readonly LogLine[];
  logged(matches: (line: LogLine) => boolean): Promise<LogLine>;
  stop: App['stop'];
  reloadRules: App['reloadRules'];
}

/** @param environment settings as environment variables; those left out have their defaults */
export async function startTestApp(
  environment: Readonly<Record<string, string>> = {},
): Promise<TestApp> {
  const log: LogLine[] = [];
  const destination = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      log.push(JSON.parse(chunk.toString()) as LogLine);
      done();
    },
  });
  const settings = parseSettings({ ...TEST_SETTINGS, ...environment });
  const app = await startApp(settings, createLogger(settings.LOG_LEVEL, destination));
  const scheme = settings.TLS_CERT_FILE === undefined ? 'http' : 'https';
  return {
    url: `${scheme}://127.0.0.1:${app.port}`,
    get adminUrl() {
      if (app.adminPort === undefined) throw new Error('no admin port');
      return `${scheme}://127.0.0.1:${app.adminPort}`;
    },
    log,
    logged: (matches) => until(() => log.find(matches)),
    stop: (graceMillis, hurry) => app.stop(graceMillis, hurry),
    reloadRules: () => app.reloadRules(),
  };
}
