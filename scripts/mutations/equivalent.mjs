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
  {
    file: 'lua/lib/instance.lua',
    line: 'elseif state.approved > state.stored_approved then',
    other: 'elseif state.approved >= state.stored_approved then',
    reason: 'if nothing was added, only a set that does not exist gets an expiry',
  },
  {
    file: 'src/redis/waiting/window-timing.ts',
    line: 'if (roomAt < this.#roomAt || isOfLaterWindow || now >= this.#roomAt) this.#roomAt = roomAt;',
    other:
      'if (roomAt <= this.#roomAt || isOfLaterWindow || now >= this.#roomAt) this.#roomAt = roomAt;',
    reason: 'it sets the time that is there',
  },
];
