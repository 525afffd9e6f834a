-- Pauses a key: nobody is approved until the pause ends, and waiters keep their places. The window goes on meanwhile.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 the length of the pause in ms, from now on; 0 ends it, 8 1 if an earlier pause may end sooner by it, else 0
-- Reply the ms until the key's pause ends; 0 without a pause

local calls = require 'lib/calls'
local instance = require 'lib/instance'
local pause = require 'lib/pause'

local function run(KEYS, ARGV)
  local millis, can_shorten = tonumber(ARGV[calls.FIRST_OWN]), ARGV[calls.FIRST_OWN + 1] == '1'
  return instance.change(KEYS, ARGV, millis == 0 and 0 or nil, function(_, state, call)
    pause.set(state, call, millis, can_shorten)
    return math.max(0, state.paused_until - call.now_ms)
  end)
end
