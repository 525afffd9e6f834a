import { provided } from './provided.js';

/** The `nginx` of this machine that `scripts/lib/find-nginx.mjs` has found, or empty. */
export function nginxProgram(): string {
  return provided('SLUICE_TEST_NGINX');
}

/**
 * `describe` for tests that need an nginx. Skipped if there is none, which
 * `scripts/lib/find-nginx.mjs` announces.
 */
export function describeWithNginx(title: string, tests: () => void): void {
  if (nginxProgram() === '') describe.skip(title, tests);
  else describe(title, tests);
}
