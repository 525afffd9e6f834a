/**
 * Changes that no test could notice, with the reason. `file`, `line` and `other` are as printed by
 * `npm run test:mutations`. These changes are not chosen.
 */
export const EQUIVALENT = [];
