import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from './run.mjs';

/**
 * The public images that the Dockerfile and docker-compose.yml use, each with the variable that replaces
 * it.
 */
export function baseImages() {
  return ['Dockerfile', 'docker-compose.yml']
    .flatMap((file) => [
      ...readFileSync(join(ROOT, file), 'utf8').matchAll(/\$\{(\w+_IMAGE):-([^}]+)\}/g),
    ])
    .map(([, variable, image]) => ({ variable, image }))
    .filter(({ variable }) => variable !== 'SLUICE_IMAGE');
}

/** The image that this variable replaces. */
export function baseImage(name) {
  return baseImages().find(({ variable }) => variable === name).image;
}

/** The options of `docker build` that pass on another registry and other images, which Docker takes from the environment. */
export const BUILD_ARGUMENTS = ['NPM_CONFIG_REGISTRY', 'NODE_IMAGE', 'GO_IMAGE'].flatMap((name) => [
  '--build-arg',
  name,
]);
