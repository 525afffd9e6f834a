-- The first arguments of every call: the caller, its settings, and how to send wakes. Redis's time is added,
-- the same for the whole call. `sharedArguments` in src/redis/scripts builds them.
--@include lib/now

-- The position of the first argument that is a script's own.
local FIRST_OWN = 8

-- The call as for a key with limits of its own, `<window>:<maximum>:<maximum in the queue>`.
local function call_with_limits(call, limits)
  if limits == '' then
    return call
  end
  local window, max, queue_max = string.match(limits, '^(%d+):(%d+):(%d+)$')
  return {
    replica = call.replica,
    lease = call.lease,
    window = tonumber(window),
    max = tonumber(max),
    queue_max = tonumber(queue_max),
    wake = call.wake,
    max_ids = call.max_ids,
    may_be_full = call.may_be_full,
    now_us = call.now_us,
    now_ms = call.now_ms,
  }
end

local function read_call(arguments)
  local now_us = now_micros()
  return {
    replica = arguments[1],
    lease = tonumber(arguments[2]),
    window = tonumber(arguments[3]),
    max = tonumber(arguments[4]),
    queue_max = tonumber(arguments[5]),
    wake = arguments[6],
    max_ids = tonumber(arguments[7]),
    -- Redis may have no memory left. A script that is called often is told, and saves a write.
    may_be_full = true,
    now_us = now_us,
    now_ms = math.floor(now_us / 1000),
  }
end
