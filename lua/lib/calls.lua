-- The first arguments of every call: 1 the caller's replica id, 2 the lease of a waiting replica in ms, 3 limits, 4 how wakes are
-- sent, 5 the most ids in a set, 6 the caller's history. `sharedArguments` in src/redis/scripts builds them. Redis's time is added,
-- the same for the whole call.

local limits_text = require 'lib/limits-text'
local now = require 'lib/now'

local calls = {}

-- The position of the first argument that is a script's own.
calls.FIRST_OWN = 7

-- All calls of a function are read into this one: another table for each call costs Redis 4 % of a plain check.
-- What a script adds to it, it sets in each call.
local call = {}

function calls.read(arguments)
  local now_us, rules = now.micros(), limits_text.parse(arguments[3])
  call.replica, call.lease, call.wake = arguments[1], tonumber(arguments[2]), arguments[4]
  -- The caller's rules for the key that is decided, without what requests have set.
  call.rules = rules
  -- Those for keys that do not bring their own.
  call.default_rules = rules
  call.max_ids = tonumber(arguments[5])
  -- Read by lib/recovery.
  call.history = arguments[6]
  -- Redis may have no memory left. A script that is called often gets this as an argument, which saves a write.
  call.may_be_full = true
  call.now_us, call.now_ms = now_us, math.floor(now_us / 1000)
  return call
end

return calls
