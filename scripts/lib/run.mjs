import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Runs a command in the project's folder. If it fails, this process ends with its code. */
export function run(command, args, options = {}) {
  endIfFailed(command, spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', ...options }));
}

/** Ends this process if a command failed, with the command's code. `result` comes from spawnSync. */
export function endIfFailed(command, result) {
  if (result.error) stop(`${command} could not be started: ${result.error.message}`);
  if (result.status !== 0) process.exit(result.status ?? 1);
}

/** Ends this process with one line that says why. */
export function stop(reason) {
  console.error(reason);
  process.exit(1);
}
