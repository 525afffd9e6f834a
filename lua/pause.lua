-- Pauses a key: nobody is approved until the pause ends, and waiters keep their places. The window goes on meanwhile.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 limits,
--       4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 the length of the pause in ms, from now on; 0 ends it
-- Reply 1
--@include lib/instance

local function run(KEYS, ARGV)
  local call, millis = read_call(ARGV), tonumber(ARGV[FIRST_OWN])
  local keys = read_keys(KEYS, 1)
  local state, idle = open_instance(keys, call, read_state(keys.state))
  if not state and millis == 0 then
    return 1
  end
  state = state or new_instance(keys, call, idle)
  set_pause(state, call, millis)
  serve_waiting(keys, state, call)
  close_instance(keys, state, call)
  return 1
end
