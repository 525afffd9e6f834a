/**
 * A variable with a program that `npm test` has found for the tests; empty if the program is missing.
 * @throws Error if the tests are not run by `npm test`, so that no test is skipped silently
 */
export function provided(variable: `SLUICE_TEST_${string}`): string {
  const value = process.env[variable];
  if (value === undefined) throw new Error(`${variable} is not set: run the tests by \`npm test\``);
  return value;
}
