-- Withdraws waiters whose clients have left. One that was approved meanwhile gives its approval
-- back, and the next waiter is served with it.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 replicas
-- ARGV  1 window length in ms, 2 lease of a waiting replica in ms
--       3 replica id, 4 '1' if it holds no other waiter of this key, which ends its lease: unless a
--       place of it is found, since this call may come later than a check that was sent after it
--       then the request ids, at most 1000
-- Reply how many were withdrawn or gave their approval back
--@include lib/now
--@include lib/limiter

local FIRST_ID = 5

local now_us = now_micros()
local now_ms = math.floor(now_us / 1000)
local window_millis, lease_millis = tonumber(ARGV[1]), tonumber(ARGV[2])
local replica = ARGV[3]

local state = open_limiter(KEYS, now_us, window_millis, lease_millis)
if not state then
  return 0
end
local cancelled = 0
for i = FIRST_ID, #ARGV do
  if redis.call('ZREM', KEYS[3], queue_member(ARGV[i], replica)) == 1 then
    cancelled = cancelled + 1
    state.changed = true
    state.waiting = nil
  elseif redis.call('SREM', KEYS[2], ARGV[i]) == 1 then
    cancelled = cancelled + 1
    state.approved = state.approved - 1
    state.made_room = true
  end
end
if ARGV[4] == '1' and not may_hold_place(KEYS[3], replica) then
  redis.call('HDEL', KEYS[4], replica)
end
serve_waiting(KEYS, state, now_ms, lease_millis)
close_limiter(KEYS, state, now_ms, lease_millis)
return cancelled
