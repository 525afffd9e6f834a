import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('deploy-environment.mjs', import.meta.url));

/**
 * Starts to find the programs for the tests of the image, the composition and the manifests, in the
 * background: building Helm and the image takes minutes.
 * @param options.get whether missing programs are installed
 * @param options.isLong whether those that only the tests in folders `long` need are among them
 * @returns `ready`, which resolves to the `environment` of the tests and the words with which to `enter` it;
 *   and `end`, which ends all started processes, and resolves to whether they have left nothing
 */
export function startDeployEnvironment({ get, isLong }) {
  const options = [...(get ? ['--get'] : []), ...(isLong ? ['--long'] : [])];
  const child = spawn(process.execPath, [PROGRAM, ...options], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ready = new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
    child.once('exit', (code) => reject(new Error(`${PROGRAM} ended with ${code}`)));
  });
  // The caller awaits the promise when it needs the environment.
  ready.catch(() => undefined);
  return {
    ready,
    end: async () => {
      child.stdin.end();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      return child.exitCode === 0;
    },
  };
}
