-- Brings a key up to now and serves its queue; tells a replica where the waiters it asks about stand.
-- A waiter that is neither approved nor in the queue (Redis lost its memory, or the replica was
-- thought dead) is put back in its old place.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 replicas
-- ARGV  1 window length in ms, 2 lease of a waiting replica in ms
--       3 maximum per window, 4 maximum in the queue, 5 ms until the window ends as far as the caller
--       knows (3 to 5: for a key that Redis has lost)
--       6 replica id, whose lease is renewed, then per waiter it asks about: request id, ticket
-- Reply 1 microseconds until there may be room again: until the window ends, or sooner (0: there is no such key)
--       2 the lowest ticket that may still be waiting, 3 how many wait
--       then the ids approved by this call, and those asked about that are approved already
--@include lib/now
--@include lib/limiter

local FIRST_WAITER = 7

local now_us = now_micros()
local now_ms = math.floor(now_us / 1000)
local window_millis, lease_millis = tonumber(ARGV[1]), tonumber(ARGV[2])
local replica = ARGV[6]

local state = open_limiter(KEYS, now_us, window_millis, lease_millis)
local was_lost = not state
if not state then
  if #ARGV < FIRST_WAITER then
    return { 0, 0, 0 }
  end
  local max, queue_max, millis_left = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
  state = restore_limiter(KEYS, now_us, window_millis, max, queue_max, millis_left)
end

local reply = { 0, 0, 0 }
for i = FIRST_WAITER, #ARGV, 2 do
  local request_id, ticket = ARGV[i], tonumber(ARGV[i + 1])
  local member = queue_member(request_id, replica)
  if redis.call('SISMEMBER', KEYS[2], request_id) == 1 then
    reply[#reply + 1] = request_id
  elseif redis.call('ZADD', KEYS[3], 'NX', ticket, member) == 1 then
    state.ticket = math.max(state.ticket, ticket)
    state.waiting = nil
    state.made_room = true
    state.expires = idle_at(state)
    was_lost = was_lost or is_older_than_key(state, ticket)
  end
end
if was_lost then
  hold_lost(KEYS[1], state, now_ms)
end

if count_waiting(KEYS[3], state) > 0 then
  hold_if_redis_was_away(state, KEYS[4], now_ms, lease_millis)
  redis.call('HSET', KEYS[4], replica, now_ms + lease_millis)
  state.changed = true
end
serve_waiting(KEYS, state, now_ms, lease_millis)
close_limiter(KEYS, state, now_ms, lease_millis)

for _, id in ipairs(state.granted or {}) do
  reply[#reply + 1] = id
end
reply[1] = micros_to_room(KEYS, state)
reply[2] = lowest_waiting_ticket(KEYS[3], state)
reply[3] = count_waiting(KEYS[3], state)
return reply
