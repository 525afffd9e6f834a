-- Withdraws waiters whose clients have disconnected, of several limiter keys. A waiter may have been approved
-- meanwhile: its approval is released, and the next waiter gets it. The replica's lease ends with its last place.
--
-- KEYS  per key: 1 state, 2 requests, 3 queue, 4 waiting, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, 2 lease of a waiting replica in ms, 3 limits,
--       4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 with a space between two, what each key has: the number of its request ids, at most 1000, and, if its
--       limits are not those in 3, `=` and its limits
--       then the request ids of all keys
-- Reply per key how many were withdrawn or released, or the error with which the key failed. The first key has a reply at
--       least. Keys after those that take long have none, and are left to the next call (lib/weight)
--@include lib/errors
--@include lib/instance
--@include lib/weight

local function withdraw(names, first_key, call, ids)
  local keys = read_keys(names, first_key)
  local state = open_instance(keys, call, read_state(keys.state))
  if not state then
    -- If Redis has lost the state alone, the places still exist.
    return redis.call('HDEL', keys.waiting, unpack(ids))
  end
  local released = release_requests(keys, state, call, ids, true)
  local gone = released + withdraw_waiters(keys, state, call, ids)
  if gone > 0 then
    remember_requests(keys, state, call, ids)
  end
  serve_waiting(keys, state, call)
  close_instance(keys, state, call)
  return gone
end

local function run(KEYS, ARGV)
  local call, replies = read_call(ARGV), {}
  local first_key, first_id = 1, FIRST_OWN + 1
  weight.begin()
  for size, limits in string.gmatch(ARGV[FIRST_OWN], '(%d+)=?(%S*)') do
    if weight.is_spent() then
      break
    end
    local next_id = first_id + tonumber(size)
    local of_key = call_with_limits(call, limits == '' and call.limits or parse_limits(limits))
    replies[#replies + 1] = reply_of(withdraw, KEYS, first_key, of_key, { unpack(ARGV, first_id, next_id - 1) })
    first_key, first_id = first_key + KEYS_PER_INSTANCE, next_id
  end
  return replies
end
