import { docker } from '../../support/docker.js';

/** The name that docker-compose.yml and the Kubernetes manifests use. */
export const IMAGE = 'sluice:0.1.0';

/** Builds the image; what has not changed is built already. */
export async function buildImage(): Promise<void> {
  // Docker takes the registry from the environment, where there is another than npm's own.
  await docker('build', '--quiet', '--build-arg', 'NPM_CONFIG_REGISTRY', '--tag', IMAGE, '.');
}
