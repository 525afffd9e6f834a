import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { approve } from './http-client.js';
import { type ReplicaProcess, startReplica } from './replica-process.js';
import { uniqueKey } from './unique-key.js';

const PRELOAD = new URL('list-loaded-modules.mjs', import.meta.url).href;

/**
 * Starts and stops a replica.
 * @param folder for the list of its modules
 * @returns the paths of all modules that it has loaded
 */
export async function loadedBy(
  settings: Readonly<Record<string, string>>,
  folder: string,
): Promise<{ all: string[]; replica: ReplicaProcess }> {
  const file = join(folder, uniqueKey());
  const replica = await startReplica({
    ...settings,
    NODE_OPTIONS: `--import=${PRELOAD}`,
    LOADED_MODULES_FILE: file,
  });
  await approve(replica.url, uniqueKey());
  await replica.kill('SIGTERM');
  return { all: JSON.parse(readFileSync(file, 'utf8')) as string[], replica };
}
