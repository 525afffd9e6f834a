import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('deploy-environment.mjs', import.meta.url));

/**
 * Begins to get what the tests of the image, the composition and the manifests need, beside whatever is
 * done meanwhile: building Helm and the image takes minutes.
 * @returns `ready`, which resolves to environment variables, and `end`, which ends what was started
 */
export function startDeployEnvironment() {
  const child = spawn(process.execPath, [PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ready = new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
    child.once('exit', (code) => reject(new Error(`${PROGRAM} ended with ${code}`)));
  });
  // It is awaited when it is needed.
  ready.catch(() => undefined);
  return {
    ready,
    end: async () => {
      child.stdin.end();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
