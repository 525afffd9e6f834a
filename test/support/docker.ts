import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { provided } from './provided.js';
import { until } from './until.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** More than the log of any container. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

const execute = promisify(execFile);

/**
 * `describe` for tests that need a Docker engine. Skipped if there is none, which
 * `scripts/lib/find-docker.mjs` announces.
 */
export function describeWithDocker(title: string, tests: () => void): void {
  if (provided('SLUICE_TEST_DOCKER_HOST') === '') describe.skip(title, tests);
  else describe(title, tests);
}

/** Runs `docker` in the project's folder. @returns its output; rejects if it fails */
export function docker(...args: string[]): Promise<string> {
  return run('docker', args);
}

/** Runs Compose in the project's folder, as `docker compose`. */
export function compose(
  environment: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<string> {
  const [program = '', ...first] = JSON.parse(provided('SLUICE_TEST_COMPOSE')) as string[];
  return run(program, [...first, ...args], environment);
}

/** Resolves when the container's HEALTHCHECK has found it healthy. Rejects with what the checks have said otherwise. */
export async function untilHealthy(container: string): Promise<void> {
  const inspect = (format: string): Promise<string> => docker('inspect', '-f', format, container);
  try {
    await until(async () => {
      const state = (await inspect('{{.State.Status}} {{.State.Health.Status}}')).trim();
      if (!state.startsWith('running')) throw new Error(`${container} is ${state}`);
      return state === 'running healthy';
    });
  } catch (error) {
    throw new Error(await inspect('{{json .State.Health}}'), { cause: error });
  }
}

async function run(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await execute(program, [...args], {
    cwd: ROOT,
    maxBuffer: MAX_OUTPUT_BYTES,
    env: { ...process.env, DOCKER_HOST: provided('SLUICE_TEST_DOCKER_HOST'), ...environment },
  });
  return stdout;
}
