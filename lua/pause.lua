-- Pauses a key: nobody is approved until the pause ends, and waiters keep their places. The window goes on meanwhile.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them (lib/calls)
--       7 the length of the pause in ms, from now on; 0 ends it, 8 1 if an earlier pause may end sooner by it, else 0
--       9 the id of a group (queue/lists) if it alone is paused, else ''; 10 how many groups the key may have
-- Reply the ms until that pause ends; 0 without a pause; -1 if the key has no room for the group

local calls = require 'lib/calls'
local group_limits = require 'limits/group-limits'
local instance = require 'lib/instance'
local pause = require 'lib/pause'

local function run(KEYS, ARGV)
  local millis, can_shorten = tonumber(ARGV[calls.FIRST_OWN]), ARGV[calls.FIRST_OWN + 1] == '1'
  local group = ARGV[calls.FIRST_OWN + 2]
  return instance.change(KEYS, ARGV, millis == 0 and 0 or nil, function(keys, state, call)
    if group ~= '' then
      local groups = group_limits.require(keys, state, call)
      call.max_groups = tonumber(ARGV[calls.FIRST_OWN + 3])
      return millis > 0 and groups:is_full_for(group) and -1 or groups:pause(group, millis, can_shorten)
    end
    pause.set(state, call, millis, can_shorten)
    return math.max(0, state.paused_until - call.now_ms)
  end)
end
