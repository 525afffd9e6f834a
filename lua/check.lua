-- Decides checks in batches, one batch for each key, and each batch in the order of its checks:
-- approves, denies or queues.
--
-- KEYS  per batch: 1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests. A name costs Redis more
--       than most of what a check does with it. So the first batches, of plain checks in a window that goes on, have
--       only 1 and 2. The batches after them, of plain checks that may begin a window, have 1, 2 and 6 to 8. Both are of keys that
--       are bare, as far as the caller knows.
--       In a cluster, one more than all batches have, which is never there (src/redis/scripts/script-client.ts). None if the
--       names are in several slots
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 the sum of: 1 if the call is sent again, and may have run before; 2 if Redis may have no memory left
--       8 how many batches have two names, 9 how many have five
--       10 '' if each batch has one check and nothing of its own; else, with a space between two, what each batch has:
--       the number of its checks; if its limits are not those in 3, `=` and the limits; if it is special, `/`
--       without KEYS: 11 the number of names, then the names, in the order of KEYS
--       then per batch: if it is special, what it says, as lib/checks reads it; then the request ids of its checks
-- Reply the replies to the batches, one after the other:
--       1 microseconds until there may be room again, 2 the maximum; or a JSON text, if the limits in force are not those of the
--       caller's rules but for the maximum, or there is more to say:
--         limits         the limits in force
--         wakeNumber     if a check has a place in the queue: the number of the last wake, this call's if it publishes one
--         at             with `wakeNumber`: the time of this call in ms since 1970
--         unclaimed      how many unclaimed approvals have lapsed since a reply told it; left out if none has
--         places         by the numbers of the checks that have taken a place over: the list of the place, or `{}`
--       3 what counts of the limits: see `room.used`
--       then per check, in their order: 1 approved, 0 denied, -1 denied because the queue is full,
--       -2 failed for lack of a place to wait in, -3 failed because the set of ids is full,
--       -4 denied because its hits are more than the maximum, -5 denied because the key is paused,
--       -6 failed because Redis is full, -7 rejected because the request with its id was released, -8, -9 or -11
--       because that has other hits, another hold or another holder, -10 denied because it has ended the wait of that
--       request, -12 rejected because it is sent again and another check has taken its request over, -13 denied because as
--       many wait of its group as may, -14 less the microseconds until its turn: denied because that is later than it can wait,
--       else its ticket in the queue
--       A batch that fails, such as one with a key of a wrong type, has its error in place of all that. A batch
--       that needs more names has false, and so has each batch after those that take long (lib/reads): it is left to the
--       next call. The other batches are still decided.
--
-- A check that is sent again takes no second approval and no second place in the queue. Redis does not
-- remember denied checks. They are decided again, but a second denial is not counted.

local calls = require 'lib/calls'
local chunks = require 'lib/chunks'
local errors = require 'lib/errors'
local key_names = require 'lib/key-names'
local limits_text = require 'lib/limits-text'
local plain_checks = require 'lib/plain-checks'
local reads = require 'lib/reads'
local verdicts = require 'lib/verdicts'
local checks = require_when_called 'lib/checks'

-- Each lookup in a table costs nearly all checks.
local FIRST_OWN, HEAD, APPROVED, DENIED = calls.FIRST_OWN, verdicts.HEAD, verdicts.APPROVED, verdicts.DENIED
local IN_WINDOW, FOR_NEW_WINDOW = key_names.IN_WINDOW, key_names.FOR_NEW_WINDOW
local ALL_NAMES, CHUNK = key_names.PER_INSTANCE, chunks.SIZE
local read_values_in_window, read_values, read_all_values =
  key_names.read_values_in_window, key_names.read_values, key_names.read_all_values
local decide_in_windows, decide_in_period = plain_checks.decide_in_windows, plain_checks.decide_in_period

local function append(replies, reply)
  if not reply or reply.err then
    replies[#replies + 1] = reply
    return
  end
  for _, value in ipairs(reply) do
    replies[#replies + 1] = value
  end
end

local function append_plain(replies, size, maximum, micros, used, granted)
  local last = #replies
  replies[last + 1] = micros
  replies[last + 2] = maximum
  replies[last + 3] = used
  last = last + HEAD
  for i = 1, size do
    replies[last + i] = i <= granted and APPROVED or DENIED
  end
end

-- A batch:
--   names, first_key, names_given   the names of its key: how many there are from names[first_key] on
--   arguments, first_id, size       the ids of its checks: how many there are from arguments[first_id] on
--   rules, special                  the caller's limits for its key, and a JSON text of what it says, or nil: plain checks say nothing
-- All batches of all calls are read into this one: another table for each call costs Redis 4 % of a plain check.
local kept_batch = {}

-- An iterator over no words. A new one for each call takes Redis time in each plain check.
local function has_nothing_of_its_own() end

-- Reads what the batch has that begins at these positions.
local function read_batch(batch, call, text, first_key, first_id, names_given)
  batch.first_key, batch.first_id, batch.names_given = first_key, first_id, names_given
  if not text then
    batch.size, batch.rules, batch.special = 1, call.default_rules, nil
    return
  end
  local size, limits, mark = string.match(text, '^(%d+)=?([^/]*)(/?)$')
  batch.size, batch.special = tonumber(size), nil
  batch.rules = limits == '' and call.default_rules or limits_text.parse(limits)
  if mark ~= '' then
    batch.special, batch.first_id = batch.arguments[first_id], first_id + 1
  end
end

-- While a slot of a cluster moves, Redis fails a command on a name that it does not find. With KEYS, a name that is never there
-- keeps the script from beginning. Without them, this function asks for it before anything is written. A plain check in
-- mid-window does not need that: its first command on the second name comes before its first write to the first one.
local function require_slot(batch)
  if batch.names_given > IN_WINDOW then
    local state = batch.names[batch.first_key]
    redis.call('EXISTS', state, key_names.never_there(state))
  end
end

-- Decides a batch. `is_last`: no batch follows. Returns false if new keys have to be decided first.
local function decide_in_order(replies, call, batch, is_last)
  -- Batches with fewer names come first. Of the others, a batch that is left is left with all that follow: they may be
  -- of the same key.
  local has_all_names, size = batch.names_given == ALL_NAMES, batch.size
  if has_all_names and reads.are_spent() then
    replies[#replies + 1] = false
    return true
  end
  if call.has_several_slots then
    require_slot(batch)
  end
  local own = batch.rules.own
  local is_fixed = own.takes_window
  local read = is_fixed and (batch.names_given == IN_WINDOW and read_values_in_window or read_values) or read_all_values
  local values = read(batch.names[batch.first_key])
  -- A key is bare if its state says nothing but what counts of its own limit, which is the caller's: it has no further limits, no
  -- holds, no overrides, and nobody has ever waited.
  local is_bare = values[2] == batch.rules.stored_text and not values[4]
  if is_bare and not batch.special and size <= CHUNK and not call.is_sent_again then
    local micros, used, granted
    if is_fixed then
      micros, used, granted = decide_in_windows(call, batch, values)
    else
      micros, used, granted = decide_in_period(call, batch, values, checks.begin_limit)
    end
    if micros then
      append_plain(replies, size, own.max, micros, used, granted)
      return true
    end
  end
  if not has_all_names then
    replies[#replies + 1] = false
  elseif values[2] and not is_last then
    return false
  else
    append(replies, checks.decide(call, batch, values))
  end
  return true
end

-- Whether Redis has more than its maxmemory by so much that approvals and places in the queue must take no more.
-- Denials and releases pass. Replicas' buffers do not count, as for Redis itself. A user who may not ask is not
-- bounded.
local MOST_OF_MAXMEMORY = 1.1
local function is_over_full()
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then
    return false
  end
  local function read(name)
    return tonumber(string.match(info, '\n' .. name .. ':(%d+)') or 0)
  end
  local most = read('maxmemory') * MOST_OF_MAXMEMORY
  return most > 0 and read('used_memory') - read('mem_not_counted_for_evict') > most
end

-- Decides a batch and all that follow, those of new keys first, as a full memory requires
-- (lib/stored).
local function decide_new_first(replies, call, batch, last_key, next_text)
  call.is_over_full = is_over_full()
  local batches, decided = {}, {}
  while batch.first_key < last_key do
    local copy = {}
    for name, value in pairs(batch) do
      copy[name] = value
    end
    batches[#batches + 1] = copy
    read_batch(batch, call, next_text(), batch.first_key + batch.names_given, batch.first_id + batch.size, ALL_NAMES)
  end
  local function decide(each)
    if call.has_several_slots then
      require_slot(each)
    end
    return checks.decide(call, each, read_all_values(each.names[each.first_key]))
  end
  local function decide_each(is_due)
    for i, each in ipairs(batches) do
      if not decided[i] and is_due(each.names[each.first_key]) then
        decided[i] = not reads.are_spent() and errors.reply_of(decide, each)
      end
    end
  end
  decide_each(function(state_key)
    return redis.pcall('EXISTS', state_key) == 0
  end)
  decide_each(function()
    return true
  end)
  for _, reply in ipairs(decided) do
    append(replies, reply)
  end
end

-- Decides the batches in their order, as far as possible. With a full memory, either Redis refuses the first batch and
-- all that follow, or new keys are decided first.
local function run(KEYS, ARGV)
  local call, replies = calls.read(ARGV), {}
  reads.begin()
  local flags = ARGV[FIRST_OWN]
  call.is_sent_again = flags == '1' or flags == '3'
  call.may_be_full = flags == '2' or flags == '3'
  call.is_over_full = nil
  local two_names_until = tonumber(ARGV[FIRST_OWN + 1])
  local five_names_until = two_names_until + ARGV[FIRST_OWN + 2]
  local texts = ARGV[FIRST_OWN + 3]
  local next_text = texts == '' and has_nothing_of_its_own or string.gmatch(texts, '%S+')
  local names, first_key, last_key, first_id = KEYS, 1, #KEYS, FIRST_OWN + 4
  call.has_several_slots = last_key == 0
  if call.has_several_slots then
    names, first_key = ARGV, first_id + 1
    last_key = first_id + ARGV[first_id]
    first_id = last_key + 1
  end
  local batch, number, out_of_memory = kept_batch, 0, nil
  batch.names, batch.arguments = names, ARGV
  -- A name that is left alone is of no batch.
  while first_key < last_key do
    number = number + 1
    local names_given = (number <= two_names_until and IN_WINDOW)
      or (number <= five_names_until and FOR_NEW_WINDOW)
      or ALL_NAMES
    read_batch(batch, call, next_text(), first_key, first_id, names_given)
    first_key, first_id = first_key + names_given, batch.first_id + batch.size
    local succeeded, is_decided = not out_of_memory, not call.may_be_full
    if succeeded and is_decided then
      succeeded, is_decided = pcall(decide_in_order, replies, call, batch, first_key >= last_key)
    end
    if not succeeded then
      local failure = out_of_memory or errors.reply(is_decided)
      out_of_memory = string.find(failure.err, '^OOM ') and failure
      append(replies, failure)
    elseif not is_decided then
      decide_new_first(replies, call, batch, last_key, next_text)
      return replies
    end
  end
  return replies
end
