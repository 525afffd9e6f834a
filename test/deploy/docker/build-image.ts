import { docker } from '../../support/docker.js';

/** The name that docker-compose.yml and the Kubernetes manifests use. */
export const IMAGE = 'sluice:0.1.0';

/** Builds the image; what has not changed is built already. */
export async function buildImage(): Promise<void> {
  // What `npm` is told here by its environment goes for the build as well, such as another registry.
  const registry = process.env.NPM_CONFIG_REGISTRY ?? process.env.npm_config_registry;
  const options = registry === undefined ? [] : ['--build-arg', `NPM_CONFIG_REGISTRY=${registry}`];
  await docker('build', '--quiet', ...options, '--tag', IMAGE, '.');
}
