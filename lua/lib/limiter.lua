-- A limiter's life in a script: open it as of now, change `state`, serve those who wait, close it.
--
-- keys: 1 state, 2 requests, 3 queue, 4 replicas
--@include lib/window
--@include lib/queue
--@include lib/held

local STATE_FIELDS = {
  'start', 'window', 'max', 'queue_max', 'approved', 'denied', 'ticket', 'expires', 'overridden',
  'born', 'held',
}

-- The state as it is stored, or nil where there is none.
local function read_state(state_key)
  local values = redis.call('HMGET', state_key, unpack(STATE_FIELDS))
  if not values[1] then
    return nil
  end
  return {
    start = tonumber(values[1]),
    window = tonumber(values[2]),
    max = tonumber(values[3]),
    queue_max = tonumber(values[4]),
    approved = tonumber(values[5]),
    denied = tonumber(values[6]),
    ticket = tonumber(values[7]),
    expires = tonumber(values[8]),
    overridden = values[9],
    -- Not there in what an older version has written.
    born = tonumber(values[10]) or 0,
    held = tonumber(values[11]) or 0,
  }
end

-- Where there is no set of ids there is nothing to unlink, and it must not be tried: Redis, when its
-- memory is full, refuses a script at its first write, and an UNLINK would be one that it lets pass.
local function begin_window(keys, state)
  state.rolled = true
  if redis.call('EXISTS', keys[2]) == 1 then
    redis.call('UNLINK', keys[2])
  end
  count_waiting(keys[3], state)
end

-- The limiter as of now, or nil where there is none. `state.rolled` says that a new window began.
-- Whether the key has been idle for too long is decided by its own field: Redis's expiry only
-- collects what is left.
local function open_limiter(keys, now_us, window_millis, lease_millis)
  local state = read_state(keys[1])
  if not state then
    return nil
  end
  local now_ms = math.floor(now_us / 1000)
  end_hold(state, now_ms)
  if now_ms >= state.expires then
    if count_waiting(keys[3], state) > 0 then
      hold_if_redis_was_away(state, keys[4], now_ms, lease_millis)
    end
    if state.held == 0 and purge_dead(keys[3], keys[4], now_ms) then
      state.waiting = nil
    end
    if count_waiting(keys[3], state) == 0 then
      redis.call('UNLINK', unpack(keys))
      return nil
    end
  end
  state.now_us = now_us
  state.stored_approved = state.approved
  state.stored_denied = state.denied
  if roll_window(state, now_ms, window_millis) then
    begin_window(keys, state)
    -- A window in which somebody waits counts as one with a check.
    if state.waiting > 0 then
      state.expires = idle_at(state)
    end
  end
  return state
end

-- A limiter that begins now. What an evicted or deleted state has left behind does not count.
local function new_limiter(keys, now_us, window_millis, max, queue_max)
  local state = {
    start = math.floor(now_us / 1000),
    window = window_millis,
    max = max,
    queue_max = queue_max,
    approved = 0,
    denied = 0,
    ticket = now_us,
    overridden = '',
    born = math.floor(now_us / 1000),
    held = 0,
    now_us = now_us,
  }
  state.expires = idle_at(state)
  begin_window(keys, state)
  return state
end

-- A limiter that Redis lost while somebody waited: the lost window was full, and is until it ends.
local function restore_limiter(keys, now_us, window_millis, max, queue_max, millis_left)
  local state = new_limiter(keys, now_us, window_millis, max, queue_max)
  millis_left = math.min(math.max(1, math.floor(millis_left)), window_millis)
  state.start = state.born + millis_left - window_millis
  state.expires = idle_at(state)
  state.approved = max
  return state
end

-- Microseconds until there may be room again: until the window ends, but for a key that is held.
local function micros_to_room(keys, state)
  local to_window_end = micros_to_window_end(state, state.now_us)
  if not is_held(state) then
    return to_window_end
  end
  local to_hold_end = state.held * 1000 - state.now_us
  return state.approved < state.max and to_hold_end or math.max(to_window_end, to_hold_end)
end

-- Tells every replica that listens: who was approved, which tickets have left the queue, and when
-- the window ends. The ids are UUIDs made by the replicas, so they need no escaping.
local function publish_wake(keys, state)
  publish(keys[1], string.format(
    '{"windowEndsInMillis":%.14g,"waiting":%.0f,"waitingFrom":%.0f,"granted":["%s"]}',
    micros_to_room(keys, state) / 1000,
    count_waiting(keys[3], state),
    lowest_waiting_ticket(keys[3], state),
    table.concat(state.granted, '","')
  ))
end

local function write_state(keys, state)
  if state.rolled or state.changed then
    local values = {}
    for _, field in ipairs(STATE_FIELDS) do
      values[#values + 1] = field
      values[#values + 1] = state[field]
    end
    redis.call('HSET', keys[1], unpack(values))
    return
  end
  if state.approved ~= state.stored_approved then
    redis.call('HSET', keys[1], 'approved', state.approved)
  end
  if state.denied ~= state.stored_denied then
    redis.call('HSET', keys[1], 'denied', state.denied)
  end
end

-- While somebody waits the keys outlive windows and leases: Redis's clock runs on while Redis stands
-- still, or can't be reached, and the queue must be there afterwards.
local LEASES_KEPT = 6

local function write_expiry(keys, state, now_ms, lease_millis)
  if count_waiting(keys[3], state) == 0 then
    redis.call('PEXPIREAT', keys[1], state.expires)
    if state.approved > 0 then
      redis.call('PEXPIREAT', keys[2], state.expires)
    end
    return
  end
  local expire_at = math.max(state.expires, now_ms + LEASES_KEPT * lease_millis)
  for _, key in ipairs(keys) do
    redis.call('PEXPIREAT', key, expire_at)
  end
end

-- Approves those who wait if room was made. Every script calls it before it approves anybody else,
-- so that a queue that is not empty means a full window.
-- `state.made_room`: an approval was given back, the maximum raised, or the key is no longer held.
local function serve_waiting(keys, state, now_ms, lease_millis)
  if not (state.rolled or state.made_room) or count_waiting(keys[3], state) == 0 then
    return
  end
  hold_if_redis_was_away(state, keys[4], now_ms, lease_millis)
  if not is_held(state) then
    state.granted = serve_queue(keys[3], keys[2], keys[4], state, now_ms)
    state.changed = true
  end
end

-- Writes what changed, sees that every key expires, and wakes the replicas of those approved.
-- `state.changed`: more than the two counters changed.
local function close_limiter(keys, state, now_ms, lease_millis)
  if state.changed and count_waiting(keys[3], state) == 0 then
    redis.call('UNLINK', keys[4])
  end
  write_state(keys, state)
  if state.rolled or state.changed then
    write_expiry(keys, state, now_ms, lease_millis)
  elseif state.approved > state.stored_approved then
    -- The set of ids may be new: empty until now, or lost to eviction.
    redis.call('PEXPIREAT', keys[2], state.expires)
  end
  if state.granted and #state.granted > 0 then
    publish_wake(keys, state)
  end
end
