import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startTestApp, type TestApp } from './app.js';
import type { Environment } from './both-limiters.js';
import { uniqueKey } from './unique-key.js';
import { type FilesRead, useApps } from './use-apps.js';

/** The whole service with a port for gateways. */
export interface GrpcApp extends TestApp {
  readonly grpcPort: number;
}

/** Keys are the values of descriptors, with one approval an hour. */
export const GATEWAY_SETTINGS: Environment = {
  GRPC_PORT: '0',
  GRPC_KEY_TEMPLATE: '{values}',
  WINDOW_MILLIS: '3600000',
  MAX_REQUESTS: '1',
};

/** @param environment settings besides {@link GATEWAY_SETTINGS}, or instead of some of them */
export async function startGrpcApp(environment: Environment = {}): Promise<GrpcApp> {
  return withGrpcPort(await startTestApp({ ...GATEWAY_SETTINGS, ...environment }));
}

/** Services of one file's tests. Each ends with its test, unless the test ends it before. */
export function useGrpcApps(): (environment?: Environment, files?: FilesRead) => Promise<GrpcApp> {
  const start = useApps();
  return async (environment, files) =>
    withGrpcPort(await start({ ...GATEWAY_SETTINGS, ...environment }, files));
}

function withGrpcPort<App extends TestApp>(app: App): App & GrpcApp {
  const serving = app.log.find(({ msg }) => msg === 'serving');
  return Object.assign(app, { grpcPort: Number(serving?.grpcPort) });
}

/** Writes a file of rules. @returns the setting that names it */
export async function rulesFile(
  folder: string,
  ...rules: readonly object[]
): Promise<{ CONFIG_FILE: string }> {
  const file = join(folder, uniqueKey());
  await writeFile(file, JSON.stringify({ keys: rules }));
  return { CONFIG_FILE: file };
}

/** A rule for all keys. */
export function ruleForAll(fields: object): object {
  return { key_pattern: '.*', key_pattern_is_regex: true, ...fields };
}
