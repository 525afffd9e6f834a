-- If its memory is full, Redis refuses a script at its first write that takes memory. After a write that takes none,
-- all later writes pass. So existing keys are decided, and only new keys fail. A script has to decide new keys
-- first.
--
-- A call of checks does that only after Redis has refused one (`may_be_full`), and knows then whether approvals may
-- still take memory (`is_over_full`). Before that, its first write has to take memory, so that Redis refuses it. What
-- has ended would be removed first. So something is written as it is before.

local digits = require 'lib/digits'
local stored = require 'lib/stored'

local full_memory = {}

local function ends_something(state, now_ms)
  if stored.has_holds(state) and now_ms >= state.first_lapse then
    return true
  end
  for _, limit in ipairs(state.limits) do
    if not limit:is_current(now_ms) then
      return true
    end
  end
  return false
end

-- Makes the first write of a call. `state`: absent if nothing is removed first.
function full_memory.write_first(state_key, call, state)
  if call.may_be_full then
    redis.call('HDEL', state_key, '')
    call.may_be_full = false
  elseif state and ends_something(state, call.now_ms) then
    redis.call('HSET', state_key, 'turn', digits(state.generation))
  end
end

return full_memory
