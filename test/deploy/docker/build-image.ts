import { docker } from '../../support/docker.js';

/** The name that docker-compose.yml uses. */
export const IMAGE = process.env.SLUICE_IMAGE ?? 'sluice:0.1.0';

/** Builds the image; what has not changed is built already. */
export async function buildImage(): Promise<void> {
  // Docker takes these from the environment, where they are set there.
  const variables = ['NPM_CONFIG_REGISTRY', 'NODE_IMAGE'].flatMap((name) => ['--build-arg', name]);
  await docker('build', '--quiet', ...variables, '--tag', IMAGE, '.');
}
