-- Changes the hits of an approval of the current window, and serves the queue if that makes room. More hits may exceed the
-- maximum: then nobody is approved until there is room again.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 limits,
--       4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 request id, 8 its hits from now on
-- Reply 1, or 0: the id is unknown, was released, or was approved in a window that has ended
--@include lib/change

local function run(KEYS, ARGV)
  return change_instance(KEYS, ARGV, function(keys, state, call)
    return amend_request(keys, state, call, ARGV[FIRST_OWN], tonumber(ARGV[FIRST_OWN + 1])) and 1 or 0
  end)
end
