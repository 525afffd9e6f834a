import { Writable } from 'node:stream';

import { type App, startApp } from '../../src/app/start-app.js';
import { parseSettings } from '../../src/config/settings.js';
import { createLogger } from '../../src/common/logger.js';
import { holdToDocument } from './openapi/held-to-document.js';
import { type LogLine, TEST_SETTINGS } from './replica-process.js';
import { until } from './until.js';

/** The whole service inside the test's process, on a free port. */
export interface TestApp {
  readonly url: string;
  /** The URL of the admin port. Throws if there is none. */
  readonly adminUrl: string;
  readonly log: readonly LogLine[];
  logged(matches: (line: LogLine) => boolean): Promise<LogLine>;
  stop: App['stop'];
  reloadRules: App['reloadRules'];
}

/** @param environment settings as environment variables; others have their defaults */
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
  const url = `${scheme}://127.0.0.1:${app.port}`;
  const adminUrl = app.adminPort && `${scheme}://127.0.0.1:${app.adminPort}`;
  const letGo = adminUrl
    ? [holdToDocument(url, settings, 'service'), holdToDocument(adminUrl, settings, 'admin')]
    : [holdToDocument(url, settings)];
  return {
    url,
    get adminUrl() {
      if (!adminUrl) throw new Error('no admin port');
      return adminUrl;
    },
    log,
    logged: (matches) => until(() => log.find(matches)),
    stop: async (graceMillis, hurry) => {
      await app.stop(graceMillis, hurry);
      for (const each of letGo) each();
    },
    reloadRules: () => app.reloadRules(),
  };
}
