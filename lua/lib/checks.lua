-- Decides any checks.

local approvals = require 'lib/approvals'
local chunks = require 'lib/chunks'
local dead_waiters = require 'queue/dead-waiters'
local digits = require 'lib/digits'
local entries = require 'queue/entries'
local given_back = require 'lib/given-back'
local holds = require 'lib/holds'
local instance = require 'lib/instance'
local key_limits = require 'limits/key-limits'
local kinds = require 'limits/kinds'
local key_names = require 'lib/key-names'
local known_requests = require 'lib/known-requests'
local limits_text = require 'lib/limits-text'
local lists = require 'queue/lists'
local lost_key = require 'lib/lost-key'
local overrides = require 'lib/overrides'
local own_ids = require 'limits/own-ids'
local pause = require 'lib/pause'
local plain_checks_in_period = require 'lib/plain-checks-in-period'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'
local verdicts = require 'lib/verdicts'

-- check.lua calls `decide_plainly` by this fragment, since an EVALSHA defines neither before it is called.
local checks = { decide_plainly = plain_checks_in_period.decide }

local WAITS_NOT = '0'
local WAITS_WITHOUT_PLACE = '2'

-- The earlier replies to checks that are sent again: request id -> reply.
local function find_decided(keys, call, batch)
  local decided, found = {}, requests.find_all(keys, nil, batch.ids)
  for id, request in pairs(found) do
    decided[id] = request.state == requests.WAITING and tonumber(request.ticket) or nil
  end
  for id in pairs(approvals.find(keys, batch.ids, found, call.now_ms)) do
    decided[id] = verdicts.APPROVED
  end
  return decided
end

-- Whether a waiter of the caller was approved, of which the caller may not have heard yet.
local function was_approved(keys, call, id)
  local found = requests.find_all(keys, nil, { id })
  return approvals.find(keys, { id }, found, call.now_ms)[id] ~= nil
end

-- Approves checks with one hit while there is room, from the first on. Returns the position of the first undecided
-- check.
local function approve(keys, state, call, batch, decided, replies)
  local i, own = 1, state.own
  local most = own:capacity(state, call)
  while i <= batch.size and own.used < most do
    local ids = {}
    local room_left = math.min(most - own.used, chunks.SIZE)
    while i <= batch.size and #ids < room_left do
      local id = batch.ids[i]
      replies[i + verdicts.HEAD] = decided[id] or (call.is_over_full and verdicts.STORE_FULL) or verdicts.APPROVED
      if replies[i + verdicts.HEAD] == verdicts.APPROVED and not decided[id] then
        ids[#ids + 1] = id
      end
      i = i + 1
    end
    own:take_all(keys, state, call, ids)
  end
  return i
end

-- The owner that a check makes of itself; nil if its caller has not chosen its request id.
local function owner_of(call, batch, i)
  local number = batch.terms.numbers and batch.terms.numbers[i]
  return number and call.replica .. '#' .. digits(number) or nil
end

-- The hits of a check, the length of its hold in ms if its approval is to be held, and who holds it then, if it says so.
local function terms_of(batch, i)
  local terms = batch.terms
  return terms.hits and terms.hits[i] or 1, terms.holds and terms.holds[i] or nil,
    terms.holders and terms.holders[i] or nil
end

-- The lane or the group of a check (queue/lists); nil if its key has neither.
local function list_of(batch, i)
  return batch.terms.lists and batch.terms.lists[i] or nil
end

-- For how many ms the place of a check is kept without its caller; nil if it ends with the check.
local function keep_of(batch, i)
  return batch.terms.keeps and batch.terms.keeps[i] or nil
end

-- Whether one more approval is kept: among the held ones, and in each limit.
local function is_kept(keys, state, call, hold, list)
  return (not hold or holds.free(state) > 0)
    and key_limits.have_free_ids(keys, state, call, hold, list and list.id)
end

-- How many wait before a check in its list. `list`: its lane or group, or nil. `joining`: the checks that join before it.
local function count_before(keys, state, call, list, joining)
  local waiting, id = queue.count_waiting(keys, state, call), list and list.id or lists.FIFO
  if state.lists then
    local count = queue.count_in_list(keys, state, call, id)
    -- Read once for all checks of a batch: those that join come behind them.
    state.dead_waiters = state.dead_waiters or dead_waiters.begin(keys, state, state.tally, call.now_ms)
    waiting = math.min(waiting, count - state.dead_waiters:count(id, count))
  elseif list then
    waiting = 0
  end
  return waiting + #joining
end

-- Whether the places of the group of a check are taken.
local function is_group_full(keys, state, call, list)
  return list and list.most and queue.count_in_list(keys, state, call, list.id, list.most) >= list.most
end

-- The reply to a check whose turn would come later than it can wait, else nil. `joining`: the checks that join before it. Where
-- a release can be expected, the check waits until its time is over.
local function reply_too_late(keys, state, call, joining, hits, longest_wait, list)
  if not longest_wait then
    return nil
  end
  local before = count_before(keys, state, call, list, joining)
  local micros = room.micros_to_turn(keys, state, call, before, hits, list and list.id)
  if micros <= longest_wait * 1000 then
    return nil
  elseif longest_wait > 0 and given_back.is_expected(keys, state, call) then
    return nil
  end
  return verdicts.TURN_TOO_LATE - micros
end

-- How a check can wait.
local function waits_of(batch, i)
  local waits = batch.terms.waits
  return waits and string.sub(waits, i, i) or WAITS_NOT
end

local function deny_or_queue(keys, state, call, batch, first, last, decided, replies)
  local terms = batch.terms
  local joining = {}
  -- With a maximum of 0 no turn ever comes.
  local places = state.own.max == 0 and 0 or state.queue_max
  for i = first, last do
    local id, hits, hold, holder = batch.ids[i], terms_of(batch, i)
    local waits, list = waits_of(batch, i), list_of(batch, i)
    local list_id = list and list.id
    local reply
    if decided[id] then
      reply = decided[id]
    elseif hits > 1 and key_limits.is_any_below(state, hits, list_id) then
      reply = verdicts.TOO_MANY_HITS
    elseif waits == WAITS_NOT and key_limits.fit(state, hits, list_id) and not is_kept(keys, state, call, hold, list) then
      reply = verdicts.KEY_FULL
    elseif waits == WAITS_NOT then
      reply = pause.is_on(state) and verdicts.PAUSED or verdicts.DENIED
      state.denied = state.denied + (call.is_sent_again and 0 or 1)
    else
      local longest_wait = terms.longest_waits and terms.longest_waits[i]
      reply = queue.count_waiting(keys, state, call) + #joining >= places and verdicts.QUEUE_FULL
        or is_group_full(keys, state, call, list) and verdicts.QUEUE_FULL_OF_GROUP
        or reply_too_late(keys, state, call, joining, hits, longest_wait, list)
        or waits == WAITS_WITHOUT_PLACE and verdicts.NO_PLACE
        or call.is_over_full and verdicts.STORE_FULL
        or queue.next_ticket(keys, state, call)
      if reply > verdicts.APPROVED then
        local owner = owner_of(call, batch, i)
        joining[#joining + 1] = {
          requestId = id, ticket = entries.format_ticket(reply), hits = hits, holdMillis = hold, holder = holder, keepMillis = keep_of(batch, i), owner = owner,
          list = list, maxWaitMillis = longest_wait,
        }
        if owner then
          known_requests.begin(keys, id)
        end
      end
    end
    if terms.takes_rest and (reply == verdicts.DENIED or reply == verdicts.TOO_MANY_HITS) then
      key_limits.take_rest(state, call, hits, list_id)
    end
    replies[i + verdicts.HEAD] = reply
  end
  if #joining > 0 then
    -- With lists, all checks join one by one.
    local joined = joining[1]
    local is_next = queue.count_waiting(keys, state, call) == 0 or serving.is_next(keys, state, call, joined.list, joined.hits)
    queue.join(keys, state, call, joining)
    serving.note_waiters(state)
    if is_next and state.serving == 1 and not room.is_closed(state) then
      serving.note_next(keys, state, call, joined)
    end
  end
end

-- Whether a check of the batch has a place in the queue, as one that is sent again may have from before.
local function has_ticket(batch, replies)
  for i = 1, batch.size do
    if replies[i + verdicts.HEAD] > verdicts.APPROVED then
      return true
    end
  end
  return false
end

-- A check whose caller has chosen its request id; nil for others.
local function named_check(call, batch, i)
  local owner = owner_of(call, batch, i)
  if not owner then
    return nil
  end
  local hits, hold, holder = terms_of(batch, i)
  local waits, longest_waits = waits_of(batch, i), batch.terms.longest_waits
  local longest_wait = longest_waits and longest_waits[i]
  return {
    requestId = batch.ids[i], owner = owner, hits = hits, holdMillis = hold, holder = holder, keepMillis = keep_of(batch, i),
    maxWaitMillis = longest_wait, can_wait = waits ~= WAITS_NOT and longest_wait ~= 0,
    has_no_place = waits == WAITS_WITHOUT_PLACE,
  }
end

-- Decides checks one after the other, where some have terms of their own: the next may fit where one does not.
local function decide_one_by_one(keys, state, call, batch, decided, replies)
  for i = 1, batch.size do
    local id, hits, hold, holder = batch.ids[i], terms_of(batch, i)
    local named = named_check(call, batch, i)
    if named then
      decided[id] = known_requests.answer(keys, state, call, named)
      if named.place then
        state.told_lists = state.told_lists or {}
        table.insert(state.told_lists, digits(i) .. '=' .. lists.describe(named.place.list))
      end
    end
    if decided[id] == verdicts.WAIT_EXPIRED then
      -- The place that has ended may have been the head's.
      serving.serve(keys, state, call)
      state.dead_waiters = nil
    end
    local list = list_of(batch, i)
    local is_approved = not decided[id] and key_limits.fit(state, hits, list and list.id)
      and serving.is_next(keys, state, call, list, hits) and is_kept(keys, state, call, hold, list)
    if is_approved and call.is_over_full then
      replies[i + verdicts.HEAD] = verdicts.STORE_FULL
    elseif is_approved then
      local owner = owner_of(call, batch, i)
      approvals.add(keys, state, call, {
        { requestId = id, hits = hits, holdMillis = hold, holder = holder, list = list, owner = owner },
      })
      lists.approve_at_once(state, list, hits)
      if state.stopped_heads and not key_limits.fit(state, 1) then
        -- It has passed the heads that are stopped. Now they wait for any room, as after lib/serving.
        state.stopped_heads = nil
      end
      replies[i + verdicts.HEAD] = verdicts.APPROVED
    else
      deny_or_queue(keys, state, call, batch, i, i, decided, replies)
    end
  end
end

-- A number for each check of a batch; false for a check without one.
local function read_numbers(text)
  local numbers = {}
  for number in string.gmatch(text .. ',', '([^,]*),') do
    numbers[#numbers + 1] = tonumber(number) or false
  end
  return numbers
end

-- A text for each check of a batch, which is percent-encoded; false for a check without one.
local function read_texts(text)
  local texts = {}
  for encoded in string.gmatch(text .. ',', '([^,]*),') do
    local decoded = string.gsub(encoded, '%%(%x%x)', function(hex)
      return string.char(tonumber(hex, 16))
    end)
    texts[#texts + 1] = decoded ~= '' and decoded
  end
  return texts
end

-- The list of each check of a batch; false for a check without one.
local function read_lists(text)
  local read = {}
  for list in string.gmatch(text .. ',', '([^,]*),') do
    read[#read + 1] = lists.parse(list) or false
  end
  return read
end

-- The values of a text of `<name>=<value>;`, by their names.
local function read_values_by_name(text)
  local values = {}
  for name, value in string.gmatch(text, '([%a_]+)=([^;]*);') do
    values[name] = value
  end
  return values
end

local NO_TERMS = {}

-- What a batch says beside the ids of its checks: check.lua has the names of all that it may say.
local function read_terms(special)
  if special == '' then
    return NO_TERMS
  end
  local said = read_values_by_name(special)
  return {
    ceilings = said.ceilings, known_limits = said.known_limits, waits = said.waits,
    longest_waits = said.longest_waits and read_numbers(said.longest_waits),
    hits = said.hits and read_numbers(said.hits),
    numbers = said.numbers and read_numbers(said.numbers), keeps = said.keeps and read_numbers(said.keeps),
    holders = said.holders and read_texts(said.holders), lists = said.lists and read_lists(said.lists),
    holds = said.holds and read_numbers(said.holds), max_holds = tonumber(said.max_holds),
    max = tonumber(said.max), queue_max = tonumber(said.queue_max), window = tonumber(said.window),
    ticket = tonumber(said.ticket), millis_left = tonumber(said.millis_left),
    takes_rest = said.takes_rest,
    -- Earlier versions do not send it.
    waiter = said.waiter or '',
  }
end

local function ids_of(batch)
  local ids = {}
  for i = 1, batch.size do
    ids[i] = batch.arguments[batch.first_id + i - 1]
  end
  return ids
end

local NOTHING_DECIDED = {}

-- Decides a batch that check.lua has read, and returns its reply. `values`: of its key, from `state_values.read`.
function checks.decide(call, batch, values)
  local terms = read_terms(batch.special)
  batch.ids, batch.terms = ids_of(batch), terms
  local keys = key_names.read(batch.names, batch.first_key)
  if terms.numbers then
    requests.require_names(keys)
  end
  call.rules = batch.rules
  local state, idle = instance.open(keys, call, stored.of_values(keys.state, values), terms)
  if not state and not idle and call.is_over_full then
    return redis.error_reply('OOM used memory is above maxmemory by more than a tenth')
  end
  if not state and not idle and terms.ticket then
    state = lost_key.restore(keys, call, terms.known_limits, terms.millis_left)
  end
  batch.begins_key = not state
  state = state or instance.new(keys, call, idle)
  if terms.ticket and recovery.is_older_than_key(keys, state, terms.ticket) then
    local has_places = #replicas.of_caller(queue.read(keys, state, call), call) > 0
    if has_places or not was_approved(keys, call, terms.waiter) then
      recovery.begin_after_loss(keys, state, call, not idle and not has_places)
    end
    lost_key.restore_overrides(state, terms.known_limits)
  end
  if batch.special ~= '' or state.limits_text ~= call.rules.text then
    overrides.configure(keys, state, call, terms, batch.begins_key)
  end
  state.expires = stored.idle_time(state)
  state.max_holds = terms.max_holds or state.max_holds
  serving.serve(keys, state, call)
  if terms.waits and state.has_more and queue.read(keys, state, call).places > 0 then
    -- Before the check joins the queue: joining renews the caller's lease, which would hide the silence.
    recovery.begin_if_redis_was_down(state, queue.read(keys, state, call), call)
  end
  -- Created with a place for one verdict, since most batches have one.
  local replies = { 0, state.own.max, 0, verdicts.DENIED }
  local decided = call.is_sent_again and find_decided(keys, call, batch) or terms.numbers and {} or NOTHING_DECIDED
  if terms.numbers or terms.hits or terms.holds or terms.lists or #state.limits > 1 or not own_ids.have_one_each(state) then
    decide_one_by_one(keys, state, call, batch, decided, replies)
  else
    local first_left = 1
    if serving.is_next(keys, state, call) then
      first_left = approve(keys, state, call, batch, decided, replies)
    end
    if first_left <= batch.size then
      deny_or_queue(keys, state, call, batch, first_left, batch.size, decided, replies)
    end
  end
  -- A hold that was just taken may be the first to lapse.
  replies[1] = room.micros_to(keys, state, call)
  replies[verdicts.HEAD] = room.used(state, call)
  local lapsed = holds.take_lapsed_unclaimed(state)
  instance.close(keys, state, call)
  if terms.waits and has_ticket(batch, replies) then
    -- All limits instead of the maximum alone, so that the caller can restore them if Redis loses the key.
    replies[2] = string.format('%s %.0f %.0f', limits_text.format(state), state.wake, call.now_ms)
  elseif not kinds.is_as_declared(state.own, call.rules.own) or state.window_is_set or #state.limits > 1 or lapsed > 0 then
    replies[2] = limits_text.format(state)
  end
  if lapsed > 0 then
    replies[2] = replies[2] .. '!' .. digits(lapsed)
  end
  if state.told_lists then
    replies[2] = replies[2] .. '\n' .. table.concat(state.told_lists, '\n')
  end
  return replies
end

return checks
