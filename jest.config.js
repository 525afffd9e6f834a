/** @type {import('jest').Config} */
export default {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testSequencer: '<rootDir>/test/slowest-first.js',
  // Sources import each other as `./x.js`, as Node will find them once they are built.
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  // Types are checked by tsc, before.
  transform: {
    '^.+\\.ts$': ['ts-jest', { useESM: true, tsconfig: 'test/tsconfig.json' }],
  },
  extensionsToTreatAsEsm: ['.ts'],
  // What it looks for first, it finds soonest.
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
  // A worker keeps 30 MB of each file of tests that it has run, and Node gives up at 4 GB.
  workerIdleMemoryLimit: '1.5GB',
  // A hang shows as this; no test asserts how long anything takes. What takes 5 s alone takes 100 s on a busy machine.
  testTimeout: 300_000,
};
