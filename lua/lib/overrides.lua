-- The limits that requests have set. One stays until the key is removed, or until the rules of the window no longer allow
-- it. A limit that no request has set comes from the rules.

local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local limits_text = require 'lib/limits-text'

local overrides = {}

-- The maximum if no request sets one from now on: the one of the rules, if it may come into force in mid-window, else
-- the current one. `of_window`: the window is one of the rules. `lapses`: a request had set the current one.
local function base_maximum(keys, state, call, of_window, current, of_rules, lapses)
  if lapses or current == of_rules then
    return of_rules
  end
  local changes = of_window and in_force.may_change(keys, state, call)
  state.limits_changed_at = changes and call.now_ms or state.limits_changed_at
  return changes and of_rules or current
end

-- Sets the length of the next window, or of the first one of a key that begins with these checks, or drops a length that
-- the rules no longer allow. `length`: nil if the checks set none. `ceiling`: the longest.
local function configure_window(state, length, begins_key, ceiling)
  if math.max(state.next_window, state.window_is_set and state.own.window or 0) > ceiling then
    state.next_window = 0
    state.window_is_set = false
  end
  if not length or state.own.algorithm ~= 'fixed_window' then
    return
  elseif begins_key then
    state.own.window, state.window_is_set = length, true
  else
    state.next_window = length ~= state.own.window and length or 0
    state.window_is_set = state.window_is_set or length == state.own.window
  end
end

-- Takes what checks set, and what the rules allow of what was set before. `said`: what the checks say. `begins_key`: the
-- key begins with them.
function overrides.configure(keys, state, call, said, begins_key)
  -- Another own limit without a boundary comes into force at once.
  local is_other = not state.own.has_boundary and not in_force.has_window_of_rules(state, call)
  if is_other and in_force.may_change(keys, state, call) then
    in_force.take_maxima(keys, state, call)
  end
  local own, rules = state.own, call.rules
  local max, queue_max = said.maxRequests, said.maxRequestsInQueue
  local max_was_set, queue_max_was_set = state.max_is_set, state.queue_max_is_set
  local of_window = in_force.has_window_of_rules(state, call)
  if max_was_set or queue_max_was_set or said.windowMillis or in_force.sets_window(state) then
    -- None of a window by other rules, and none if every override counts.
    local ceilings = of_window and said.ceilings or {}
    configure_window(state, said.windowMillis, begins_key, ceilings.windowMillis or math.huge)
    -- A request may have set the length that the window has already.
    of_window = of_window or in_force.has_window_of_rules(state, call)
    max = max or (max_was_set and own.max <= (ceilings.maxRequests or math.huge) and own.max)
    queue_max = queue_max or (queue_max_was_set and state.queue_max <= (ceilings.maxRequestsInQueue or math.huge) and state.queue_max)
  end
  state.max_is_set, state.queue_max_is_set = max and true, queue_max and true
  max = max or base_maximum(keys, state, call, of_window, own.max, rules.own.max, max_was_set)
  queue_max = queue_max
    or base_maximum(keys, state, call, of_window, state.queue_max, rules.queue_max, queue_max_was_set)
  state.made_room = state.made_room or max > own.max
  own:set_max(max)
  state.queue_max = queue_max
  if of_window and state.further_text ~= rules.further_text and in_force.may_change(keys, state, call) then
    state.limits_changed_at = call.now_ms
    key_limits.take_further(keys, state, rules, call)
  end
  state.limits_changed = limits_text.format(state) ~= state.limits_text
end

return overrides
