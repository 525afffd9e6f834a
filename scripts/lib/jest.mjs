/** The arguments of node that run Jest with these arguments. Its cache stays in this folder. */
export function jestCommand(...args) {
  return ['node_modules/jest/bin/jest.js', '--cacheDirectory=node_modules/.cache/jest', ...args];
}

/** Folders of tests that run only to the full extent. */
export const LONG_TESTS = 'test/(deploy/)?long/';

/** The environment with which tests run to the full extent (`test/support/extent.ts`). */
export const FULL_EXTENT = { SLUICE_TEST_EXTENT: 'full' };

/** The environment of jest: this process's environment, and `more`. */
export function jestEnvironment(more) {
  return {
    ...process.env,
    ...more,
    // Jest runs ES modules only behind this flag: https://jestjs.io/docs/ecmascript-modules
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --no-warnings=ExperimentalWarning`,
  };
}
