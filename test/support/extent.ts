/**
 * Whether tests go to the full extent, which takes minutes more: more runs of properties, more values, real waits until
 * names have gone. `CI=true` and `npm run test:long` set it.
 */
export const IS_FULL = process.env.SLUICE_TEST_EXTENT === 'full';

/** What a test takes of something: the same claim on fewer cases in `npm test`, and all cases in CI. */
export function extent<T>(quick: T, full: T): T {
  return IS_FULL ? full : quick;
}
