/** The arguments of node that run Jest with these arguments. What it keeps for the next run stays in this folder. */
export function jestCommand(...args) {
  return ['node_modules/jest/bin/jest.js', '--cacheDirectory=node_modules/.cache/jest', ...args];
}

/** Folders of tests that are run to the full extent only. */
export const LONG_TESTS = 'test/(deploy/)?long/';

/** The environment by which tests go to the full extent (`test/support/extent.ts`). */
export const FULL_EXTENT = { SLUICE_TEST_EXTENT: 'full' };

/** The environment of jest: that of this process, and `more`. */
export function jestEnvironment(more) {
  return {
    ...process.env,
    ...more,
    // Jest runs ES modules only behind this flag: https://jestjs.io/docs/ecmascript-modules
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules --no-warnings=ExperimentalWarning`,
  };
}
