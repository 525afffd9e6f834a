-- Decides any checks.
--@include lib/instance
--@include lib/replies

local QUEUE_FULL, NO_PLACE, SET_FULL, TOO_MANY_HITS, PAUSED, STORE_FULL, TURN_TOO_LATE = -1, -2, -3, -4, -5, -6, -7
local WAITS_NOT, WAITS_WITHOUT_PLACE = '0', '2'

-- The greatest overrides of the maximum, of the queue's maximum and of the window's length that count.
local function read_ceilings(ceilings)
  if not ceilings then
    return math.huge, math.huge, math.huge
  end
  local max, queue_max, window = string.match(ceilings, '^(-?%d+):(-?%d+):(-?%d+)$')
  return tonumber(max), tonumber(queue_max), tonumber(window)
end

-- The maximum that holds if no request sets one from now on: that of the rules, if it may come into force in
-- mid-window, else the current one. `of_window`: the window is one of the rules. `lapses`: a request had set the current
-- one.
local function base_maximum(keys, state, call, of_window, current, of_rules, lapses)
  if lapses or current == of_rules then
    return of_rules
  end
  local changes = of_window and may_change_limits(keys, state, call)
  state.limits_changed_at = changes and call.now_ms or state.limits_changed_at
  return changes and of_rules or current
end

-- Sets the length of the next window, or drops a length that the rules no longer allow. `ceiling`: the longest.
local function configure_window(state, batch, ceiling)
  if math.max(state.next_window, state.window_is_set and state.window or 0) > ceiling then
    set_more(state, 'next_window', 0)
    state.window_is_set = false
  end
  local window = batch.window
  if window then
    set_more(state, 'next_window', window ~= state.window and window or 0)
    state.window_is_set = state.window_is_set or window == state.window
  end
end

-- An override stays until the key is removed, or until the rules of the window no longer allow it. A limit without an
-- override comes from the rules.
local function configure(keys, state, call, batch)
  local max, queue_max = batch.max, batch.queue_max
  local max_was_set, queue_max_was_set = state.max_is_set, state.queue_max_is_set
  local of_window = has_window_of_rules(state, call)
  if max_was_set or queue_max_was_set or batch.window or sets_window(state) then
    local max_ceiling, queue_ceiling, longest = read_ceilings(of_window and batch.ceilings)
    configure_window(state, batch, longest)
    -- A request may have set the length that the window has already.
    of_window = of_window or has_window_of_rules(state, call)
    max = max or (max_was_set and state.max <= max_ceiling and state.max)
    queue_max = queue_max or (queue_max_was_set and state.queue_max <= queue_ceiling and state.queue_max)
  end
  state.max_is_set, state.queue_max_is_set = max and true, queue_max and true
  max = max or base_maximum(keys, state, call, of_window, state.max, call.limits.max, max_was_set)
  queue_max = queue_max
    or base_maximum(keys, state, call, of_window, state.queue_max, call.limits.queue_max, queue_max_was_set)
  state.made_room = state.made_room or max > state.max
  state.max, state.queue_max = max, queue_max
  if of_window and state.further_text ~= call.limits.further_text and may_change_limits(keys, state, call) then
    state.limits_changed_at = call.now_ms
    further.take_rules(keys, state, call.limits, call.now_ms)
  end
  state.limits_changed = format_limits(state) ~= state.limits
end

-- The earlier replies to checks that are sent again: request id -> reply.
local function find_decided(keys, call, batch)
  local decided = {}
  for i, ticket in ipairs(list_in_chunks('HMGET', keys.waiting, batch.ids)) do
    decided[batch.ids[i]] = tonumber(ticket)
  end
  for id in pairs(find_approved(keys, batch.ids, call.now_ms)) do
    decided[id] = APPROVED
  end
  return decided
end

-- Approves checks with one hit while there is room, from the first on. Returns the position of the first undecided check.
local function approve(keys, state, call, batch, decided, replies)
  local i = 1
  local most = capacity(state, call)
  while i <= batch.size and state.approved < most do
    local ids = {}
    local room = math.min(most - state.approved, CHUNK)
    while i <= batch.size and #ids < room do
      local id = batch.ids[i]
      replies[i + HEAD] = decided[id] or (call.is_over_full and STORE_FULL) or APPROVED
      if replies[i + HEAD] == APPROVED and not decided[id] then
        ids[#ids + 1] = id
      end
      i = i + 1
    end
    add_requests(keys, state, call, ids)
  end
  return i
end

-- The reply to a check whose turn would come later than it can wait, else nil. `before`: how many wait before it. Where
-- a release can be expected, the check waits until its time is over.
local function reply_too_late(keys, state, call, before, hits, longest_wait)
  local micros = longest_wait and micros_to_turn(keys, state, call, before, hits)
  if not micros or micros <= longest_wait * 1000 or (longest_wait > 0 and expects_release(keys, state, call)) then
    return nil
  end
  return TURN_TOO_LATE - micros
end

-- Whether one more approval fits among those that are kept: the held ones, or those of the window.
local function has_place(keys, state, call, hold)
  local free = hold and holds.free(keys, state) or free_ids(keys, state, call)
  return free > 0 and further.has_place(keys, state, call, hold)
end

-- Whether the check's hits fit into all limits.
local function fits(state, hits)
  return state.approved + hits <= state.max and further.fits(state, hits)
end

-- Whether the check's hits would fit, but no more approvals are kept.
local function is_set_full(keys, state, call, hits, hold)
  return fits(state, hits) and not has_place(keys, state, call, hold)
end

local function deny_or_queue(keys, state, call, batch, first, last, decided, replies)
  local joining = {}
  -- With a maximum of 0 no turn ever comes.
  local places = state.max == 0 and 0 or state.queue_max
  for i = first, last do
    local id, hits, hold = batch.ids[i], hits_of_list(batch.hits, i), batch.holds and batch.holds[i]
    local waits = batch.waits and string.sub(batch.waits, i, i) or WAITS_NOT
    local reply
    if decided[id] then
      reply = decided[id]
    elseif hits > ONE_HIT and (hits > state.max or further.exceeds(state, hits)) then
      reply = TOO_MANY_HITS
    elseif waits == WAITS_NOT and is_set_full(keys, state, call, hits, hold) then
      reply = SET_FULL
    elseif waits == WAITS_NOT then
      reply = is_paused(state) and PAUSED or DENIED
      state.denied = state.denied + (call.is_sent_again and 0 or 1)
    else
      local before = count_waiting(state, read_queue(keys, state, call)) + #joining
      local longest_wait = batch.longest_waits and batch.longest_waits[i]
      reply = before >= places and QUEUE_FULL
        or reply_too_late(keys, state, call, before, hits, longest_wait)
        or waits == WAITS_WITHOUT_PLACE and NO_PLACE
        or call.is_over_full and STORE_FULL
        or next_ticket(keys, state, call)
      if reply > APPROVED then
        joining[#joining + 1] = { request_id = id, ticket = reply, hits = hits, hold = hold }
      end
    end
    replies[i + HEAD] = reply
  end
  if #joining > 0 then
    join_queue(keys, state, call, joining)
    if has_room(state, call) then
      set_more(state, 'blocked', 1)
    end
    -- All limits instead of the maximum alone, so that the caller can restore them if Redis loses the key.
    replies[2] = format_limits(state)
  end
end

-- Decides checks one after the other, where some have terms of their own: the next may fit where one does not.
local function decide_one_by_one(keys, state, call, batch, decided, replies)
  for i = 1, batch.size do
    local id, hits, hold = batch.ids[i], hits_of_list(batch.hits, i), batch.holds and batch.holds[i]
    local is_next = admits_newcomers(state, call) and fits(state, hits) and has_place(keys, state, call, hold)
    if is_next and not decided[id] and call.is_over_full then
      replies[i + HEAD] = STORE_FULL
    elseif is_next and not decided[id] then
      approve_requests(keys, state, call, { id }, { { hits = hits, hold = hold } })
      replies[i + HEAD] = APPROVED
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

-- The values of a text of `<name>=<value>;`, by their names.
local function read_values_by_name(text)
  local values = {}
  for name, value in string.gmatch(text, '([%a_]+)=([^;]*);') do
    values[name] = value
  end
  return values
end

-- `special`: what check.lua says of it.
local function read_batch(arguments, first_id, size, special)
  local batch = { ids = {}, size = size, is_special = special ~= '' }
  for i = 1, size do
    batch.ids[i] = arguments[first_id + i - 1]
  end
  if batch.is_special then
    local said = read_values_by_name(special)
    batch.ceilings, batch.known_limits, batch.waits = said.ceilings, said.known_limits, said.waits
    batch.longest_waits = said.longest_waits and read_numbers(said.longest_waits)
    batch.hits = said.hits and read_numbers(said.hits)
    batch.holds, batch.max_holds = said.holds and read_numbers(said.holds), tonumber(said.max_holds)
    batch.max, batch.queue_max, batch.window = tonumber(said.max), tonumber(said.queue_max), tonumber(said.window)
    batch.ticket, batch.millis_left = tonumber(said.ticket), tonumber(said.millis_left)
    -- Earlier versions do not send it.
    batch.waiter = said.waiter or ''
  end
  return batch
end

local NOTHING_DECIDED = {}

-- Decides a batch, and returns its reply. Its key's names begin at names[first_key], its ids at arguments[first_id].
-- `limits`: of its key. `special`: what check.lua says of it. `values`: of its key, from `read_values`.
local function decide(call, names, first_key, arguments, first_id, size, limits, special, values)
  local keys, batch = read_keys(names, first_key), read_batch(arguments, first_id, size, special)
  call = call_with_limits(call, limits)
  local state, idle = open_instance(keys, call, state_of(keys.state, values))
  if not state and not idle and call.is_over_full then
    return redis.error_reply('OOM used memory is above maxmemory by more than a tenth')
  end
  if not state and not idle and batch.ticket then
    state = restore_instance(keys, call, batch.known_limits, batch.millis_left)
  end
  state = state or new_instance(keys, call, idle)
  if batch.ticket and is_older_than_key(keys, state, batch.ticket) then
    local has_places = read_queue(keys, state, call).replicas[call.replica] ~= nil
    -- The caller may not have heard yet that its waiter was approved.
    if has_places or not find_approved(keys, { batch.waiter }, call.now_ms)[batch.waiter] then
      hold_after_loss(keys, state, call, not idle and not has_places)
    end
    restore_overrides(state, batch.known_limits)
  end
  if batch.is_special or state.limits ~= call.limits.text then
    configure(keys, state, call, batch)
  end
  state.expires = idle_time(state)
  state.max_holds = batch.max_holds or state.max_holds
  serve_waiting(keys, state, call)
  if batch.waits and state.has_more and read_queue(keys, state, call).places > 0 then
    -- Before the check joins the queue: joining renews the caller's lease, which would hide the silence.
    hold_if_redis_was_down(state, read_queue(keys, state, call), call)
  end
  -- Created with a place for one verdict, since most batches have one.
  local replies = { 0, state.max, 0, DENIED }
  local decided = call.is_sent_again and find_decided(keys, call, batch) or NOTHING_DECIDED
  if batch.hits or batch.holds or counts_ids_apart(state) or state.further then
    decide_one_by_one(keys, state, call, batch, decided, replies)
  else
    local first_left = 1
    if admits_newcomers(state, call) then
      first_left = approve(keys, state, call, batch, decided, replies)
    end
    if first_left <= batch.size then
      deny_or_queue(keys, state, call, batch, first_left, batch.size, decided, replies)
    end
  end
  -- A hold that was just taken may be the first to lapse.
  replies[1] = micros_to_room(keys, state, call)
  replies[HEAD] = taken(state, call)
  if state.window_is_set or state.further then
    replies[2] = format_limits(state)
  end
  close_instance(keys, state, call)
  return replies
end
