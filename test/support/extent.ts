/**
 * Whether tests run to the full extent, which takes minutes more: more runs of properties, more values, real waits
 * until names have expired. `npm run test:long` sets it.
 */
export const IS_FULL = process.env.SLUICE_TEST_EXTENT === 'full';

/** The cases of a test: fewer in `npm test`, and all in `npm run test:long`, with the same claim. */
export function extent<T>(quick: T, full: T): T {
  return IS_FULL ? full : quick;
}
