-- Decides a batch of checks of one key, in their order: approves, denies or queues each.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 replicas
-- ARGV  1 window length in ms, 2 lease of a waiting replica in ms
--       3 maximum per window, 4 maximum in the queue (the caller's defaults)
--       5 override of the maximum or '', 6 override of the queue's maximum or ''
--       7 replica id, then per check: request id, '1' if it can wait else '0'
-- Reply 1 ms until the window ends, then per check, in their order:
--       1 approved, 0 denied, -1 refused because the queue is full, else its ticket in the queue
--
-- A check that is sent again takes no second approval and no second place in the queue. One that was
-- denied leaves no trace by which to know it again: it is decided, and denied, anew.
--@include lib/now
--@include lib/limiter

local APPROVED, DENIED, QUEUE_FULL = 1, 0, -1
local FIRST_CHECK = 8

local now_us = now_micros()
local now_ms = math.floor(now_us / 1000)
local window_millis, lease_millis = tonumber(ARGV[1]), tonumber(ARGV[2])
local replica = ARGV[7]

-- An override stays until the key goes; what nobody overrode follows the caller's defaults.
local function configure(state)
  local max, queue_max = tonumber(ARGV[5]), tonumber(ARGV[6])
  local max_overridden = max or string.find(state.overridden, '^max')
  local queue_max_overridden = queue_max or string.find(state.overridden, 'queue_max$')
  max = max or (max_overridden and state.max) or tonumber(ARGV[3])
  queue_max = queue_max or (queue_max_overridden and state.queue_max) or tonumber(ARGV[4])
  local overridden = {}
  if max_overridden then
    overridden[#overridden + 1] = 'max'
  end
  if queue_max_overridden then
    overridden[#overridden + 1] = 'queue_max'
  end
  overridden = table.concat(overridden, ',')
  if max ~= state.max or queue_max ~= state.queue_max or overridden ~= state.overridden then
    state.changed = true
  end
  state.made_room = max > state.max
  state.max, state.queue_max, state.overridden = max, queue_max, overridden
end

-- Approves checks from the first on while there is room; returns the position of the next one. An
-- id that the set already holds is a check sent again, and takes no room.
local function approve(state, replies)
  local position = FIRST_CHECK
  while position < #ARGV and state.approved < state.max do
    local ids = {}
    local room = math.min(state.max - state.approved, CHUNK)
    while position < #ARGV and #ids < room do
      ids[#ids + 1] = ARGV[position]
      replies[#replies + 1] = APPROVED
      position = position + 2
    end
    state.approved = state.approved + redis.call('SADD', KEYS[2], unpack(ids))
  end
  return position
end

local function enqueue(state, request_id)
  local member = queue_member(request_id, replica)
  local known_ticket = redis.call('ZSCORE', KEYS[3], member)
  if known_ticket then
    return tonumber(known_ticket)
  end
  if count_waiting(KEYS[3], state) >= state.queue_max then
    if purge_dead(KEYS[3], KEYS[4], now_ms) then
      state.waiting = nil
    end
    if count_waiting(KEYS[3], state) >= state.queue_max then
      return QUEUE_FULL
    end
  end
  local ticket = next_ticket(state)
  redis.call('ZADD', KEYS[3], ticket, member)
  redis.call('HSET', KEYS[4], replica, now_ms + lease_millis)
  state.waiting = state.waiting + 1
  state.changed = true
  return ticket
end

local function refuse_or_enqueue(state, position, replies)
  for first = position, #ARGV, 2 * CHUNK do
    local ids = {}
    local last = math.min(first + 2 * (CHUNK - 1), #ARGV - 1)
    for i = first, last, 2 do
      ids[#ids + 1] = ARGV[i]
    end
    local sent_again = redis.call('SMISMEMBER', KEYS[2], unpack(ids))
    for i = 1, #ids do
      if sent_again[i] == 1 then
        replies[#replies + 1] = APPROVED
      elseif ARGV[first + 2 * i - 1] == '1' then
        replies[#replies + 1] = enqueue(state, ids[i])
      else
        state.denied = state.denied + 1
        replies[#replies + 1] = DENIED
      end
    end
  end
end

local state = open_limiter(KEYS, now_us, window_millis)
  or new_limiter(KEYS, now_us, window_millis, tonumber(ARGV[3]), tonumber(ARGV[4]))
configure(state)
if state.expires ~= idle_at(state) then
  state.expires = idle_at(state)
  state.changed = true
end
serve_waiting(KEYS, state, now_ms)
local replies = { millis_to_window_end(state, now_ms) }
local next_check = approve(state, replies)
refuse_or_enqueue(state, next_check, replies)
close_limiter(KEYS, state, now_ms, lease_millis)
return replies
