-- Gives one approval of the current window back, and serves the head of the queue with it.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 replicas
-- ARGV  1 window length in ms, 2 lease of a waiting replica in ms, 3 request id
-- Reply 1 released, 0 not found: unknown, released before, or approved in a window that has ended
--@include lib/now
--@include lib/limiter

local now_us = now_micros()
local now_ms = math.floor(now_us / 1000)
local window_millis, lease_millis = tonumber(ARGV[1]), tonumber(ARGV[2])

local state = open_limiter(KEYS, now_us, window_millis, lease_millis)
if not state then
  return 0
end
local released = redis.call('SREM', KEYS[2], ARGV[3])
state.approved = state.approved - released
state.made_room = state.made_room or released == 1
serve_waiting(KEYS, state, now_ms, lease_millis)
close_limiter(KEYS, state, now_ms, lease_millis)
return released
