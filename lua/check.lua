-- Decides checks in batches, one batch for each key, and each batch in the order of its checks:
-- approves, denies or queues.
--
-- KEYS  per batch: 1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 7 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 window length
--       in ms, 4 maximum per window, 5 maximum in the queue, 6 how wakes are sent, 7 the most ids in a set
--       8 the sum of: 1 if the call is sent again, and may have run before; 2 if Redis may have no memory left
--       then per batch: its key's limits in place of 3 to 5, as `<window>:<maximum>:<maximum in the
--       queue>`, or '', the greatest overrides that count, as `<maximum>:<maximum in the queue>` with -1
--       for none, or '' if all do, override of the maximum or '', override of the queue's maximum or '',
--       the lowest ticket of the caller's waiters for the key or '',
--       ms until the window ends as far as the caller knows,
--       the number of checks, and per check: request id, '1' if it can wait, '2' if it can but has no
--       place left to wait in, else '0'
-- Reply per batch, in their order, a list:
--       1 microseconds until there may be room again, 2 maximum per window, 3 approvals of the window,
--       then per check, in their order: 1 approved, 0 denied, -1 refused because the queue is full,
--       -2 refused for lack of a place to wait in, -3 refused because the set of ids is full,
--       else its ticket in the queue
--       A batch that fails, such as one with a key of a wrong type, has its error in the list's
--       place. The others are decided all the same.
--
-- A check that is sent again takes no second approval and no second place in the queue. Redis does not
-- remember denied checks. They are decided anew, but a second denial is not counted.
--@include lib/errors
--@include lib/instance

local APPROVED, DENIED, QUEUE_FULL, NO_PLACE, SET_FULL = 1, 0, -1, -2, -3
local BATCH_ARGS = 7
-- The entries of a reply before its verdicts.
local HEAD = 3

local call = read_call(ARGV)
local is_sent_again = ARGV[FIRST_OWN] % 2 == 1
call.may_be_full = ARGV[FIRST_OWN] - 1 > 0

-- The greatest overrides of the maximum and of the queue's maximum that count.
local function read_ceilings(ceilings)
  if ceilings == '' then
    return math.huge, math.huge
  end
  local max, queue_max = string.match(ceilings, '^(-?%d+):(-?%d+)$')
  return tonumber(max), tonumber(queue_max)
end

-- An override stays until the key is removed, or until it does not count any more. A limit without an override
-- follows the caller's defaults.
local function configure(state, call, batch)
  local max, queue_max = batch.max, batch.queue_max
  local overridden = state.overridden
  if overridden ~= '' then
    local max_ceiling, queue_ceiling = read_ceilings(batch.ceilings)
    max = max or (string.find(overridden, '^max') and state.max <= max_ceiling and state.max)
    queue_max = queue_max
      or (string.find(overridden, 'queue_max$') and state.queue_max <= queue_ceiling and state.queue_max)
  end
  if max and queue_max then
    overridden = 'max,queue_max'
  else
    overridden = (max and 'max') or (queue_max and 'queue_max') or ''
  end
  max, queue_max = max or call.max, queue_max or call.queue_max
  if max ~= state.max or queue_max ~= state.queue_max or overridden ~= state.overridden then
    state.changed = true
    state.made_room = state.made_room or max > state.max
    state.max, state.queue_max, state.overridden = max, queue_max, overridden
  end
end

-- The earlier replies to checks that are sent again: request id -> reply.
local function find_decided(keys, ids)
  local decided = {}
  for i, ticket in ipairs(list_in_chunks('HMGET', keys.waiting, ids)) do
    decided[ids[i]] = tonumber(ticket)
  end
  for id in pairs(find_approved(keys, ids)) do
    decided[id] = APPROVED
  end
  return decided
end

-- Approves checks while there is room, from the first on. Returns the position of the first undecided check.
local function approve(keys, state, call, batch, decided, replies)
  local i = 1
  local most = capacity(state, call)
  while i <= #batch.ids and state.approved < most do
    local ids = {}
    local room = math.min(most - state.approved, CHUNK)
    while i <= #batch.ids and #ids < room do
      local id = batch.ids[i]
      replies[i + HEAD] = decided[id] or APPROVED
      if not decided[id] then
        ids[#ids + 1] = id
      end
      i = i + 1
    end
    add_requests(keys, state, call, ids)
  end
  return i
end

local function refuse_or_queue(keys, state, call, batch, first, decided, replies)
  local joining = {}
  -- Where the maximum is 0, nobody's turn ever comes.
  local places = state.max == 0 and 0 or state.queue_max
  local is_set_full = state.approved >= call.max_ids and state.approved < state.max
  for i = first, #batch.ids do
    local id, waits = batch.ids[i], batch.waits[i]
    local reply
    if decided[id] then
      reply = decided[id]
    elseif waits == '0' and is_set_full then
      reply = SET_FULL
    elseif waits == '0' then
      reply = DENIED
      state.denied = state.denied + (is_sent_again and 0 or 1)
    elseif count_waiting(state, read_queue(keys, state, call.now_ms)) + #joining >= places then
      reply = QUEUE_FULL
    elseif waits == '2' then
      reply = NO_PLACE
    else
      reply = next_ticket(state, call)
      joining[#joining + 1] = { request_id = id, ticket = reply }
    end
    replies[i + HEAD] = reply
  end
  if #joining > 0 then
    join_queue(keys, state, call, joining)
  end
end

-- `stored`: the state of the key, or nil where it is new.
local function decide(keys, batch, stored)
  local call = call_with_limits(call, batch.limits)
  local state, idle = open_instance(keys, call, stored)
  if not state and batch.ticket then
    state = restore_instance(keys, call, idle, batch.max or call.max, batch.millis_left)
  end
  state = state or new_instance(keys, call, idle)
  configure(state, call, batch)
  local expires = idle_at(state)
  if state.expires ~= expires then
    state.expires = expires
    state.changed = true
  end
  if batch.ticket and is_older_than_key(state, batch.ticket) then
    hold_after_loss(keys, state, call)
  end
  serve_waiting(keys, state, call)
  local replies = { micros_to_room(state, call), state.max }
  local decided = is_sent_again and find_decided(keys, batch.ids) or {}
  local first_left = 1
  if admits_newcomers(state, call) then
    first_left = approve(keys, state, call, batch, decided, replies)
  end
  replies[HEAD] = state.approved
  refuse_or_queue(keys, state, call, batch, first_left, decided, replies)
  close_instance(keys, state, call)
  return replies
end

-- The batch whose arguments begin at `first`, and the position after it.
local function read_batch(first)
  local size = tonumber(ARGV[first + 6])
  local batch = {
    limits = ARGV[first],
    ceilings = ARGV[first + 1],
    max = tonumber(ARGV[first + 2]),
    queue_max = tonumber(ARGV[first + 3]),
    ticket = tonumber(ARGV[first + 4]),
    millis_left = tonumber(ARGV[first + 5]),
    ids = {},
    waits = {},
  }
  local next_batch = first + BATCH_ARGS + 2 * size
  for i = first + BATCH_ARGS, next_batch - 1, 2 do
    batch.ids[#batch.ids + 1] = ARGV[i]
    batch.waits[#batch.waits + 1] = ARGV[i + 1]
  end
  return batch, next_batch
end

-- With a full memory, Redis has to see the keys that are new first (`decide_in_full_memory`). So they are decided
-- on as their states are read, and the others after them.
local replies, keys, batches, stored = {}, {}, {}, {}
local position = FIRST_OWN + 1
for i = 1, #KEYS / KEYS_PER_INSTANCE do
  keys[i] = read_keys(KEYS, (i - 1) * KEYS_PER_INSTANCE + 1)
  batches[i], position = read_batch(position)
  local state, failure = read_state(keys[i].state, redis.pcall)
  stored[i] = state
  replies[i] = failure or state or reply_of(decide, keys[i], batches[i])
end

local is_decided = {}
for i = 1, #keys do
  local state, name = stored[i], keys[i].state
  if state then
    if is_decided[name] then
      -- An earlier batch of the same key has changed it.
      state = read_state(name)
    end
    is_decided[name] = true
    replies[i] = reply_of(decide, keys[i], batches[i], state)
  end
end
return replies
