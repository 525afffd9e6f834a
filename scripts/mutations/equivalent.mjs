/**
 * Changes that no test could notice, with the reason. `file`, `line` and `other` are as printed by
 * `npm run test:mutations`. These changes are not chosen.
 */
export const EQUIVALENT = [
  {
    file: 'src/redis/availability/call-guard.ts',
    line: '#isSent = false;',
    other: '#isSent = true;',
    reason: 'the first attempt begins at once, and sets it',
  },
];
