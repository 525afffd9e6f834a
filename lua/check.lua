-- Decides checks in batches, one batch for each key, and each batch in the order of its checks:
-- approves, denies or queues.
--
-- KEYS  per batch: 1 state, 2 requests, 3 queue, 4 replicas
-- ARGV  1 window length in ms, 2 lease of a waiting replica in ms
--       3 maximum per window, 4 maximum in the queue (the caller's defaults), 5 replica id
--       then per batch: override of the maximum or '', override of the queue's maximum or '',
--       the lowest ticket of those who wait for the key at the caller or '',
--       ms until the window ends as far as the caller knows,
--       the number of checks, and per check: request id, then
--       '1' if it can wait, '0' if it can't, '2' if it can't and may have been decided before
-- Reply per batch, in their order, a list:
--       1 microseconds until the window ends, then per check, in their order:
--       1 approved, 0 denied, -1 refused because the queue is full, else its ticket in the queue
--       A batch that fails, such as one with a key of a wrong type, has its error in the list's
--       place; the others are decided all the same.
--
-- A check that is sent again takes no second approval and no second place in the queue. One that was
-- denied leaves no trace by which to know it again: it is decided anew, but not counted if it is denied.
--@include lib/now
--@include lib/errors
--@include lib/limiter

local APPROVED, DENIED, QUEUE_FULL = 1, 0, -1
local KEYS_PER_BATCH = 4
local FIRST_BATCH = 6

local now_us = now_micros()
local now_ms = math.floor(now_us / 1000)
local window_millis, lease_millis = tonumber(ARGV[1]), tonumber(ARGV[2])
local default_max, default_queue_max = tonumber(ARGV[3]), tonumber(ARGV[4])
local replica = ARGV[5]

-- An override stays until the key goes; what nobody overrode follows the caller's defaults.
local function configure(state, max, queue_max)
  local overridden = state.overridden
  if overridden ~= '' then
    max = max or (string.find(overridden, '^max') and state.max)
    queue_max = queue_max or (string.find(overridden, 'queue_max$') and state.queue_max)
  end
  if max and queue_max then
    overridden = 'max,queue_max'
  else
    overridden = (max and 'max') or (queue_max and 'queue_max') or ''
  end
  max, queue_max = max or default_max, queue_max or default_queue_max
  if max ~= state.max or queue_max ~= state.queue_max or overridden ~= state.overridden then
    state.changed = true
    state.made_room = state.made_room or max > state.max
    state.max, state.queue_max, state.overridden = max, queue_max, overridden
  end
end

-- Approves checks, of which the ids stand at every second position from `first` to `last`, from the
-- first on while there is room; returns the position of the next one. An id that the set already
-- holds is a check sent again, and takes no room.
local function approve(keys, state, first, last, replies)
  local position = first
  while position < last and state.approved < state.max do
    local ids = {}
    local room = math.min(state.max - state.approved, CHUNK)
    while position < last and #ids < room do
      ids[#ids + 1] = ARGV[position]
      replies[#replies + 1] = APPROVED
      position = position + 2
    end
    state.approved = state.approved + redis.call('SADD', keys[2], unpack(ids))
  end
  return position
end

local function enqueue(keys, state, request_id)
  local member = queue_member(request_id, replica)
  local known_ticket = redis.call('ZSCORE', keys[3], member)
  if known_ticket then
    return tonumber(known_ticket)
  end
  if count_waiting(keys[3], state) >= state.queue_max then
    if purge_dead(keys[3], keys[4], now_ms) then
      state.waiting = nil
    end
    if count_waiting(keys[3], state) >= state.queue_max then
      return QUEUE_FULL
    end
  end
  local ticket = next_ticket(state)
  redis.call('ZADD', keys[3], ticket, member)
  redis.call('HSET', keys[4], replica, now_ms + lease_millis)
  state.waiting = state.waiting + 1
  state.changed = true
  return ticket
end

local function refuse_or_enqueue(keys, state, first, last, replies)
  for chunk_first = first, last, 2 * CHUNK do
    local ids = {}
    for i = chunk_first, math.min(chunk_first + 2 * CHUNK - 1, last), 2 do
      ids[#ids + 1] = ARGV[i]
    end
    local sent_again = redis.call('SMISMEMBER', keys[2], unpack(ids))
    for i = 1, #ids do
      if sent_again[i] == 1 then
        replies[#replies + 1] = APPROVED
      elseif ARGV[chunk_first + 2 * i - 1] == '1' then
        replies[#replies + 1] = enqueue(keys, state, ids[i])
      else
        if ARGV[chunk_first + 2 * i - 1] == '0' then
          state.denied = state.denied + 1
        end
        replies[#replies + 1] = DENIED
      end
    end
  end
end

local function open_or_make(keys, max, waiting)
  local state = open_limiter(keys, now_us, window_millis, lease_millis)
  if state then
    return state
  end
  if not waiting then
    return new_limiter(keys, now_us, window_millis, default_max, default_queue_max)
  end
  return restore_limiter(
    keys, now_us, window_millis, max or default_max, default_queue_max, waiting.millis_left
  )
end

-- `waiting`: what the caller knows of those who wait there, or nil where nobody does.
local function decide(keys, max, queue_max, waiting, first, last)
  local state = open_or_make(keys, max, waiting)
  configure(state, max, queue_max)
  local expires = idle_at(state)
  if state.expires ~= expires then
    state.expires = expires
    state.changed = true
  end
  if waiting and is_older_than_key(state, waiting.ticket) then
    hold_lost(keys[1], state, now_ms)
  end
  serve_waiting(keys, state, now_ms, lease_millis)
  local replies = { micros_to_room(keys, state) }
  local next_check = first
  if not is_held(state) then
    next_check = approve(keys, state, first, last, replies)
  end
  refuse_or_enqueue(keys, state, next_check, last, replies)
  close_limiter(keys, state, now_ms, lease_millis)
  return replies
end

local replies = {}
local position = FIRST_BATCH
for first_key = 1, #KEYS, KEYS_PER_BATCH do
  local keys = { unpack(KEYS, first_key, first_key + KEYS_PER_BATCH - 1) }
  local max, queue_max = tonumber(ARGV[position]), tonumber(ARGV[position + 1])
  local ticket = tonumber(ARGV[position + 2])
  local waiting = ticket and { ticket = ticket, millis_left = tonumber(ARGV[position + 3]) }
  local first = position + 5
  local last = first + 2 * tonumber(ARGV[position + 4]) - 1
  replies[#replies + 1] = reply_of(decide, keys, max, queue_max, waiting, first, last)
  position = last + 1
end
return replies
