/**
 * Changes that make no difference that a test could see, with the reason: `file`, `line` and `other` as
 * `npm run test:mutations` prints them. They are not chosen.
 */
export const EQUIVALENT = [];
