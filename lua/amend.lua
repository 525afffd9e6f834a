-- Changes the hits of an approval that still counts, renews its hold, or both, and serves the queue if that makes room.
-- More hits may exceed the maximum: then nobody is approved until there is room again.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 limits,
--       4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 request id, 8 its hits from now on, or '', 9 the length of its hold in ms from now on, or ''
-- Reply the ms until the hold lapses, or -1 if the approval counts in its window only, or -2: the id is unknown, was
--       released, was approved in a window that has ended, or its hold has lapsed; or the call is about its hold alone,
--       and the approval is not held
--@include lib/change

local OF_WINDOW, NOT_FOUND = -1, -2

local function run(KEYS, ARGV)
  local id, hits, hold = ARGV[FIRST_OWN], tonumber(ARGV[FIRST_OWN + 1]), tonumber(ARGV[FIRST_OWN + 2])
  return change_instance(KEYS, ARGV, NOT_FOUND, function(keys, state, call)
    local millis_left = holds.renew(keys, state, call, id, hold, hits)
    if millis_left then
      return millis_left
    end
    local is_amended = hits and not hold and amend_hits(keys, state, call, id, hits)
    return is_amended and OF_WINDOW or NOT_FOUND
  end)
end
