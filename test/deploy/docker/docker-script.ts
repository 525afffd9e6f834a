import { execFileSync } from 'node:child_process';

import { provided } from '../../support/provided.js';

/** The words of a variable that holds a JSON list, each in quotes; empty if the program is missing. */
export function quotedWords(variable: 'SLUICE_TEST_KUSTOMIZE' | 'SLUICE_TEST_COMPOSE'): string {
  const list = provided(variable);
  return list === '' ? '' : (JSON.parse(list) as string[]).map((word) => `'${word}'`).join(' ');
}

/** What a build and a composition take from the environment of the tests, as far as it is set. */
export const DOCKER_VARIABLES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && /^(?:HOME|NPM_CONFIG_REGISTRY|[A-Z]+_IMAGE)$/.test(name)
      ? [[name, value]]
      : [],
  ),
);

/** A script for sh in place of `docker`: it uses the engine of the tests, and a project of Compose of its own. */
export function dockerScript(project: string): string {
  const program = execFileSync('sh', ['-c', 'command -v docker'], { encoding: 'utf8' }).trim();
  return [
    `export DOCKER_HOST='${provided('SLUICE_TEST_DOCKER_HOST')}' COMPOSE_PROJECT_NAME='${project}'`,
    `case "$1" in`,
    `  compose) shift; exec ${quotedWords('SLUICE_TEST_COMPOSE')} "$@" ;;`,
    `  build) shift; exec '${program}' build --build-arg NPM_CONFIG_REGISTRY --build-arg NODE_IMAGE --build-arg GO_IMAGE "$@" ;;`,
    `  *) exec '${program}' "$@" ;;`,
    `esac`,
  ].join('\n');
}
