import { docker } from '../../support/docker.js';

/** The name that docker-compose.yml uses. */
export const IMAGE = process.env.SLUICE_IMAGE ?? 'sluice:0.1.0';

/** Builds the image. Docker caches unchanged layers. */
export async function buildImage(): Promise<void> {
  // Docker takes the values from the environment, if they are set.
  const names = ['NPM_CONFIG_REGISTRY', 'NODE_IMAGE', 'GO_IMAGE'];
  const variables = names.flatMap((name) => ['--build-arg', name]);
  await docker('build', '--quiet', ...variables, '--tag', IMAGE, '.');
}
