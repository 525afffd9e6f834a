-- What was given back to the limits of a key: `released` is when an approval was released, corrected downwards, or
-- lapsed last, in ms since 1970.

local key_limits = require 'limits/key-limits'
local stored = require 'lib/stored'

local given_back = {}

-- Approvals take less than before, so that waiters may have room.
function given_back.note(state, call)
  state.made_room = true
  state.released_at = call.now_ms
end

-- Makes a change of approvals, and notes it if they take less than before. Returns what the change returns.
function given_back.note_if_less(state, call, change)
  local used_before = key_limits.used_of_all(state)
  local result = change()
  if key_limits.used_of_all(state) < used_before then
    given_back.note(state, call)
  end
  return result
end

-- Whether to expect that the queue gets room before the window ends: an approval is held now, or something was given
-- back in this window or the last.
function given_back.is_expected(keys, state, call)
  if stored.has_holds(state) then
    return true
  end
  local released_at = state.released_at or tonumber(redis.call('HMGET', keys.state, 'released')[1])
  if not released_at then
    return false
  elseif released_at > call.now_ms then
    -- The clock has gone back.
    released_at, state.released_at = call.now_ms, call.now_ms
  end
  for _, limit in ipairs(state.limits) do
    if released_at >= limit.start - limit:length() then
      return true
    end
  end
  return false
end

return given_back
