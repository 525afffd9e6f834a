/** The `nginx` of this machine that `scripts/lib/find-nginx.mjs` has found. */
export function nginxProgram(): string {
  const { SLUICE_TEST_NGINX: program } = process.env;
  if (program === undefined) throw new Error('no nginx to test with: run the tests by `npm test`');
  return program;
}

/**
 * `describe` for tests that need an nginx. Skipped where there is none, which
 * `scripts/lib/find-nginx.mjs` announces.
 */
export function describeWithNginx(title: string, tests: () => void): void {
  if (nginxProgram() === '') describe.skip(title, tests);
  else describe(title, tests);
}
