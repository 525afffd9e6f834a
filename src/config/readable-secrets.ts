import { stat } from 'node:fs/promises';

import type { Logger } from 'pino';

import type { NamedFile } from './named-file.js';

const OTHERS_MAY_READ = 0o004;
const PERMISSIONS = 0o777;

/** Warns of each file with secrets that every user of the machine may read. */
export async function warnOfReadableSecrets(
  files: readonly NamedFile[],
  logger: Logger,
): Promise<void> {
  // Windows has other permissions.
  if (process.platform === 'win32') return;
  for (const { variable, path, isSecret } of files) {
    if (isSecret !== true) continue;
    const mode = await permissionsOf(path);
    if ((mode & OTHERS_MAY_READ) === 0) continue;
    logger.warn(
      { variable, path, mode: `0${mode.toString(8)}` },
      `every user of this machine can read the file of ${variable}: remove that right, as by chmod o-r`,
    );
  }
}

/** None for a file that is missing: its reader says so. */
async function permissionsOf(path: string): Promise<number> {
  try {
    return (await stat(path)).mode & PERMISSIONS;
  } catch {
    return 0;
  }
}
