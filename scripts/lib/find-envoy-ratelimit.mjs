import { skipping } from './skipping.mjs';

/**
 * The path of Envoy's rate limit service, which the variable of the same name gives; '' without one. Go's proxy does not have it,
 * so that the tests can't build it: build `src/service_cmd` as `ratelimit` in a checkout of
 * https://github.com/envoyproxy/ratelimit. The tests read the configurations of the checkout.
 */
export function findEnvoyRatelimit() {
  const path = process.env.SLUICE_TEST_ENVOY_RATELIMIT ?? '';
  if (!path) skipping('ratelimit', "Envoy's rate limit service beside Sluice");
  return path;
}
