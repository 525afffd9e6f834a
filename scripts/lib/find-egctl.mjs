import { skipping } from './skipping.mjs';

/**
 * The path of Envoy Gateway's egctl, which the variable of the same name gives; '' without one. To build it takes a quarter of an
 * hour: `go build ./cmd/egctl` in https://github.com/envoyproxy/gateway.
 */
export function findEgctl() {
  const path = process.env.SLUICE_TEST_EGCTL ?? '';
  if (!path) skipping('egctl', 'what Envoy Gateway makes of its file');
  return path;
}
