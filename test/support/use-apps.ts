import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startTestApp, type TestApp } from './app.js';
import type { Environment } from './both-limiters.js';
import { useTemporaryFolder } from './temporary-folder.js';
import { tokenFile } from './tokens.js';
import { uniqueKey } from './unique-key.js';

/** What is in the files that a service reads. Without a list, there is no such file. */
export interface FilesRead {
  readonly rules?: readonly object[] | undefined;
  readonly tokens?: readonly object[] | undefined;
}

/** A service of a test, whose rules the test can change. */
export interface OwnApp extends TestApp {
  /** Replaces all rules, and returns when they are in force. The service needs to have rules already. */
  setRules(...rules: readonly object[]): Promise<void>;
}

/** Starts a service. @param environment settings as environment variables */
export type StartApp = (environment?: Environment, files?: FilesRead) => Promise<OwnApp>;

function starter(): StartApp {
  const folder = useTemporaryFolder();
  return async (environment = {}, { rules, tokens } = {}) => {
    const file = join(folder, uniqueKey());
    const write = (keys: readonly object[]) => writeFile(file, JSON.stringify({ keys }));
    if (rules) await write(rules);
    const app = await startTestApp({
      ...(rules && { CONFIG_FILE: file }),
      ...(tokens && { AUTH_TOKENS_FILE: await tokenFile(folder, ...tokens) }),
      ...environment,
    });
    return Object.assign(app, {
      setRules: async (...keys: readonly object[]) => {
        await write(keys);
        await app.reloadRules();
      },
    });
  };
}

/** Services of one file's tests. Each ends with its test, unless the test ends it before. */
export function useApps(): StartApp {
  const start = starter();
  const apps = new Set<TestApp>();
  afterEach(async () => {
    await Promise.all([...apps].map((app) => app.stop(0, AbortSignal.abort())));
  });
  return async (...args) => {
    const app = await start(...args);
    const { stop } = app;
    app.stop = (...times) => {
      apps.delete(app);
      return stop(...times);
    };
    apps.add(app);
    return app;
  };
}

/**
 * The service of all tests of a file or a `describe`. It starts before them and ends after them.
 * @param environment is called when the Redis of the file has started
 */
export function useApp(environment?: () => Environment, files?: FilesRead): OwnApp {
  const start = starter();
  let app: OwnApp | undefined;
  beforeAll(async () => {
    app = await start(environment?.(), files);
  });
  afterAll(() => app?.stop(0, AbortSignal.abort()));
  // Whatever is asked of it is asked of the service that runs.
  return new Proxy({} as OwnApp, {
    get: (_target, name) => Reflect.get(app!, name) as unknown,
  });
}
