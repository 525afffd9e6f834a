import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('deploy-environment.mjs', import.meta.url));

/**
 * Begins to get the programs for the tests of the image, the composition and the manifests, in the
 * background: to build Helm and the image takes minutes.
 * @returns `ready`, which resolves to environment variables, and `end`, which ends all started processes
 */
export function startDeployEnvironment() {
  const child = spawn(process.execPath, [PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ready = new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
    child.once('exit', (code) => reject(new Error(`${PROGRAM} ended with ${code}`)));
  });
  // The caller awaits it when it is needed.
  ready.catch(() => undefined);
  return {
    ready,
    end: async () => {
      child.stdin.end();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
