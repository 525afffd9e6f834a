-- The first arguments of every call: 1 the caller's replica id, 2 the lease of a waiting replica in ms, 3 limits, 4 how wakes are
-- sent, 5 the most ids in a set, 6 the caller's history. `sharedArguments` in src/redis/scripts builds them. Redis's time is added,
-- the same for the whole call.

local limits_text = require 'lib/limits-text'
local now = require 'lib/now'

local calls = {}

-- The position of the first argument that is a script's own.
calls.FIRST_OWN = 7

function calls.read(arguments)
  local now_us, rules = now.micros(), limits_text.parse(arguments[3])
  return {
    replica = arguments[1],
    lease = tonumber(arguments[2]),
    -- The caller's rules for the key that is decided, without what requests have set.
    rules = rules,
    -- Those for keys that do not bring their own.
    default_rules = rules,
    wake = arguments[4],
    max_ids = tonumber(arguments[5]),
    -- Read by lib/recovery.
    history = arguments[6],
    -- Redis may have no memory left. A script that is called often gets this as an argument, which saves a write.
    may_be_full = true,
    now_us = now_us,
    now_ms = math.floor(now_us / 1000),
  }
end

return calls
