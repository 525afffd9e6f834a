import { spawnSync } from 'node:child_process';

/** npm itself asks again if a request fails, but not if the connection breaks while it reads an answer. */
const ATTEMPTS = 3;

/**
 * Installs packages with npm, and tries again if that fails.
 * @param words npm's command with its options
 * @param options those of spawnSync
 * @returns the result of the last attempt, as from spawnSync
 */
export function installWithNpm(words, options) {
  for (let attempt = 1; ; attempt += 1) {
    const result = spawnSync('npm', words, options);
    if (result.error || result.status === 0 || attempt === ATTEMPTS) return result;
    console.error(`npm failed (attempt ${attempt} of ${ATTEMPTS}); trying again ...`);
  }
}
