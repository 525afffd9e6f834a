/**
 * Changes that no test could notice, with the reason. `file`, `line` and `other` are as printed by
 * `npm run test:mutations`, and `before` is the line before, if the file has several such lines. These changes are not
 * chosen.
 */
export const EQUIVALENT = [
  {
    file: 'src/limiter/memory/holds.ts',
    line: '#count({ state, request }: Hold, sign: 1 | -1): void {',
    other: '#count({ state, request }: Hold, sign: 1 | -2): void {',
    reason: 'a type',
  },
  {
    file: 'lua/lib/recovery.lua',
    line: 'local is_new_silence = silent_since < call.now_ms and silent_since >= (state.ended_recovery_began or -math.huge)',
    other:
      'local is_new_silence = silent_since <= call.now_ms and silent_since >= (state.ended_recovery_began or -math.huge)',
    reason: 'a millisecond more or less of a lease',
  },
  {
    file: 'lua/queue/queue.lua',
    line: 'local waiters = entries.read(keys, list and lists.first_of(keys, list, -1) or lists.all(keys))',
    other:
      'local waiters = entries.read(keys, list and lists.first_of(keys, list, -2) or lists.all(keys))',
    reason: 'a limit below 0 is none',
  },
  {
    file: 'lua/check.lua',
    line: "return most > 0 and read('used_memory') - read('mem_not_counted_for_evict') > most",
    other: "return most > 0 and read('used_memory') - read('mem_not_counted_for_evict') >= most",
    reason: 'a byte more or less of all memory',
  },
  {
    file: 'lua/lib/holds.lua',
    line: "key_limits.ask_all(state, 'amend', keys, state, id, hits, true)",
    other: "key_limits.ask_all(state, 'amend', keys, state, id, hits, false)",
    reason: 'a limit in which held approvals count as such has no ids of them',
  },
  {
    file: 'lua/limits/fixed-window.lua',
    line: 'self.used, self.carried = self.used + sum, self.carried + sum',
    other: 'self.used, self.carried = self.used + sum, self.carried - sum',
    reason: 'only whether anything was carried over is asked',
  },
  {
    file: 'src/limiter/memory/limits/token-bucket.ts',
    line: 'if (hits > rise) this.#highMaximum = Math.max(this.#highMaximum, knownMaximum);',
    other: 'if (hits >= rise) this.#highMaximum = Math.max(this.#highMaximum, knownMaximum);',
    reason:
      'all hits fit, and a level so low that more than the maximum fit has no excess above it',
  },
  {
    file: 'lua/queue/turn-walk.lua',
    line: 'return one.rank < other.rank',
    other: 'return one.rank <= other.rank',
    reason: 'both are not equal',
  },
  {
    file: 'src/redis/availability/call-guard.ts',
    line: '#isSent = false;',
    other: '#isSent = true;',
    reason: 'the first attempt begins at once, and sets it',
  },
  {
    file: 'src/limiter/memory/waits.ts',
    line: 'this.onChange(entry);',
    other: '',
    before: '// A hold that begins now may be the first to lapse.',
    reason: 'whoever serves the queue sets the timer as well, or it is due at that moment',
  },
  {
    file: 'src/limiter/memory/limits/approved-ids.ts',
    line: 'for (let index = 0; index < before.length; index += wordsBefore) {',
    other: 'for (let index = 0; index <= before.length; index += wordsBefore) {',
    reason: 'behind the table is nothing, which looks like a free slot',
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
    line: 'return lists.first_of(keys, id, 1)[1]',
    other: 'return lists.first_of(keys, id, 2)[1]',
    reason: 'the first of two entries is the first one',
  },
  {
    file: 'lua/limits/held.lua',
    line: 'lanes[lane] = true',
    other: 'lanes[lane] = false',
    reason: 'only the names are read',
  },
  {
    file: 'lua/limits/fixed-window.lua',
    line: 'if self.used < self.floor then',
    other: 'if self.used <= self.floor then',
    reason: 'where both are equal, nothing is added',
  },
  {
    file: 'lua/lib/snapshot.lua',
    line: 'local is_blocked = false',
    other: 'local is_blocked = true',
    reason: 'where it stays, the limits have no room, so that no call serves more',
  },
  {
    file: 'lua/lib/room.lua',
    line: 'if state.served > 0 and key_limits.have_pace(state) then',
    other: 'if state.served >= 0 and key_limits.have_pace(state) then',
    reason: 'any time is later than 20 ms after 1970',
  },
  {
    file: 'src/limiter/memory/limits/approved-ids.ts',
    line: 'return (table[index + 1] ?? 0) === 0 && (table[index] ?? 0) === 0;',
    other: 'return (table[index + 1] ?? 0) === 0 || (table[index] ?? 0) === 0;',
    reason: 'ids are scrambled with random numbers: of 2^31 ids one has a zero there',
  },
  {
    file: 'src/limiter/memory/limits/fixed-window.ts',
    line: 'return this.#surplus > 0 && this.window.reportedUntil < this.window.end;',
    other: 'return this.#surplus >= 0 && this.window.reportedUntil < this.window.end;',
    reason: 'where nothing is reported, a report that ends adds nothing and makes no room',
  },
];
