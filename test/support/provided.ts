/**
 * What `npm test` has found for the tests; empty where it could not be had.
 * @throws Error where the tests are not run by `npm test`, so that nothing is skipped in silence
 */
export function provided(variable: `SLUICE_TEST_${string}`): string {
  const value = process.env[variable];
  if (value === undefined) throw new Error(`${variable} is not set: run the tests by \`npm test\``);
  return value;
}
