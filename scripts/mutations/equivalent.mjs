/**
 * Changes that no test could notice, with the reason. `file`, `line` and `other` are as printed by
 * `npm run test:mutations`, and `before` is the line before, if the file has several such lines. These changes are not
 * chosen.
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
    line: 'elseif state.own.used > state.stored_used then',
    other: 'elseif state.own.used >= state.stored_used then',
    reason: 'if nothing was added, only a set that does not exist gets an expiry',
  },
  {
    file: 'src/limiter/memory/memory-limiter.ts',
    line: 'this.#settleWhenRoom(entry);',
    other: '',
    before: '// A hold that begins now may be the first to lapse.',
    reason: 'whoever serves the queue sets the timer as well, or it is due at that moment',
  },
  {
    file: 'lua/limits/further-ids.lua',
    line: 'state.further_changed = true',
    other: '',
    before: "redis.call('HDEL', further_ids.built_name(keys, limit), id)",
    reason: 'a release is remembered, which writes the state of a key with limits in full',
  },
  {
    file: 'src/limiter/memory/limits/approved-ids.ts',
    line: 'for (let index = 0; index < before.length; index += wordsBefore) {',
    other: 'for (let index = 0; index <= before.length; index += wordsBefore) {',
    reason: 'behind the table is nothing, which looks like a free slot',
  },
  {
    file: 'lua/lib/stored.lua',
    line: 'if state.has_more and state.changed then',
    other: 'if state.has_more or state.changed then',
    reason: 'a field that did not change is not written, and fields that say nothing are removed',
  },
  {
    file: 'lua/check.lua',
    line: 'succeeded, is_decided = pcall(decide_in_order, replies, call, batch, first_key > last_key)',
    other:
      'succeeded, is_decided = pcall(decide_in_order, replies, call, batch, first_key >= last_key)',
    reason: 'each batch has two names or more, so that one name is never left',
  },
  {
    file: 'lua/queue/lists.lua',
    line: 'return first_of(keys, id, 1)[1]',
    other: 'return first_of(keys, id, 2)[1]',
    reason: 'the first of two entries is the first one',
  },
  {
    file: 'src/limiter/memory/limits/fixed-window.ts',
    line: 'return this.#surplus > 0 && this.window.reportedUntil < this.window.end;',
    other: 'return this.#surplus >= 0 && this.window.reportedUntil < this.window.end;',
    reason: 'where nothing is reported, a report that ends adds nothing and makes no room',
  },
];
