/** The command that installs everything that the tests of test/deploy need. */
export const GET_ALL = 'npm run test:deploy';

/** Prints in one line what is missing, which tests are skipped for it, and which command installs it, if any. */
export function skipping(missing, tests, command) {
  const way = command ? `\`${command}\` gets it` : 'put it on PATH';
  console.error(`no ${missing}: skipping the tests of ${tests}; ${way}`);
}
