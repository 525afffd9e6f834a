import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from './run.mjs';

/** The public images that the Dockerfile and docker-compose.yml build on. */
export function baseImages() {
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  const composition = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const node = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile)[1];
  const images = [...composition.matchAll(/^ +image: (\S+)$/gm)].map(([, image]) => image);
  return [node, ...images.filter((image) => !image.startsWith('sluice:'))];
}
