-- A key that Redis lost while somebody waited. Callers tell what they know of it: `known_limits` are the limits that
-- were in force, as lib/limits-text has them, or ''.

local instance = require 'lib/instance'
local limits_text = require 'lib/limits-text'
local stored = require 'lib/stored'
local window = require 'limits/window'

local lost_key = {}

-- Makes the key again. The lost window was full, and stays full until it ends. `millis_left`: the ms until there was
-- room, below 0 if that time is over. Which of several limits was full is unknown, so all of them are full until then.
function lost_key.restore(keys, call, known_limits, millis_left)
  local rules = known_limits == '' and call.rules or limits_text.parse(known_limits)
  local state = instance.new(keys, call, nil, rules)
  for _, limit in ipairs(state.limits) do
    limit:restore_full(state, call.now_ms, millis_left)
  end
  state.expires = stored.idle_time(state)
  -- The limits were in force in the lost window. Rules that were loaded since, as in an outage, are newer.
  state.limits_changed_at = call.now_ms - window.begun_ago(rules.own.window, millis_left)
  return state
end

-- Restores the limits that requests had set in a key that was made again, unless requests have set others since.
function lost_key.restore_overrides(state, known_limits)
  if known_limits == '' then
    return
  end
  local known = limits_text.parse(known_limits)
  if known.window_is_set and state.own.takes_window and not state.window_is_set and state.next_window == 0 then
    state.next_window = known.own.window
  end
  if known.max_is_set and not state.max_is_set then
    state.made_room = state.made_room or known.own.max > state.own.max
    state.own:set_max(known.own.max)
    state.max_is_set = true
    state.limits_changed = true
  end
  if known.queue_max_is_set and not state.queue_max_is_set then
    state.queue_max, state.queue_max_is_set = known.queue_max, true
    state.limits_changed = true
  end
end

return lost_key
