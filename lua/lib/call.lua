-- The first arguments of every call: the caller, its settings, and how to send wakes. Redis's time is added,
-- the same for the whole call. `sharedArguments` in src/redis/scripts builds them.
--@include lib/now
--@include lib/limits

-- The position of the first argument that is a script's own.
local FIRST_OWN = 7

-- The call as for a key with these limits.
local function call_with_limits(call, limits)
  if limits == call.limits then
    return call
  end
  return {
    replica = call.replica,
    lease = call.lease,
    limits = limits,
    wake = call.wake,
    max_ids = call.max_ids,
    history = call.history,
    is_sent_again = call.is_sent_again,
    may_be_full = call.may_be_full,
    is_over_full = call.is_over_full,
    now_us = call.now_us,
    now_ms = call.now_ms,
  }
end

local function read_call(arguments)
  local now_us = now_micros()
  return {
    replica = arguments[1],
    lease = tonumber(arguments[2]),
    -- The caller's rules for the key, without what requests have set.
    limits = parse_limits(arguments[3]),
    wake = arguments[4],
    max_ids = tonumber(arguments[5]),
    -- Read by lib/history.
    history = arguments[6],
    -- Redis may have no memory left. A script that is called often gets this as an argument, which saves a write.
    may_be_full = true,
    now_us = now_us,
    now_ms = math.floor(now_us / 1000),
  }
end
