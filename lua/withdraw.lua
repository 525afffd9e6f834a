-- Withdraws waiters whose clients have disconnected. A waiter may have been approved meanwhile: its approval
-- is released, and the next waiter gets it. The replica's lease ends with its last place.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 limits,
--       4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       then the request ids, at most 1000
-- Reply how many were withdrawn or released
--@include lib/instance

local call = read_call(ARGV)
local keys = read_keys(KEYS, 1)

local ids = { unpack(ARGV, FIRST_OWN) }
local state = open_instance(keys, call, read_state(keys.state))
if not state then
  -- Where Redis has lost the state alone, the places are still there.
  return redis.call('HDEL', keys.waiting, unpack(ids))
end
local released = release_requests(keys, state, ids)
local gone = released + withdraw_waiters(keys, state, call, ids)
if gone > 0 then
  remember_requests(keys, state, call, ids)
end
serve_waiting(keys, state, call)
close_instance(keys, state, call)
return gone
