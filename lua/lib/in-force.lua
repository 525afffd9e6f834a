-- Which limits are in force if callers have different rules, as in a rollout. The limits of a key, its window's length
-- and its maxima, are one unit: the window of one caller with the maximum of another would approve more than either.
-- They change together at a boundary. If the length stays the same, the maxima change at once. Sliding windows and
-- token buckets have no boundary, and change at once.
--
-- The newer rules win. A caller's rules are newer if they were loaded after the limits in force came into force. If
-- they were loaded before, it is unknown which rules are newer. Then the limits stay, so that callers do not undo each
-- other's changes with each check, but at most for RULES_STAY_MILLIS: the caller that brought them may be gone.
--
-- `changed`: since when the limits are in force, in ms since 1970; absent while they are the first ones of the key. A
-- limit that a request has set does not come from the rules, and stays.

local history = require 'lib/history'
local key_limits = require 'limits/key-limits'
local kinds = require 'limits/kinds'
local past_requests = require 'lib/past-requests'

local in_force = {}

local RULES_STAY_MILLIS = 60000

-- Whether a request has set the length of the current window, or of the next one.
function in_force.sets_window(state)
  return state.window_is_set or state.next_window > 0
end

local function differs_from_rules(state, rules)
  return not kinds.is_same(state.own, rules.own)
    or (state.own.window ~= rules.own.window and not in_force.sets_window(state))
    or (state.own.max ~= rules.own.max and not state.max_is_set)
    or (state.queue_max ~= rules.queue_max and not state.queue_max_is_set)
    or state.further_text ~= rules.further_text
end

-- Whether the window is one of the caller's rules, up to a length that a request has set.
function in_force.has_window_of_rules(state, call)
  return kinds.is_same(state.own, call.rules.own)
    and (state.own.window == call.rules.own.window or state.window_is_set)
end

local function waits_for_boundary(state, call)
  return state.own.has_boundary and not in_force.has_window_of_rules(state, call)
end

-- Whether the caller's rules may replace the limits in force.
function in_force.may_change(keys, state, call)
  local since = state.is_new and state.born
  if not since then
    local born, changed = unpack(redis.call('HMGET', keys.state, 'born', 'changed'))
    since = tonumber(changed or born)
    if since > call.now_ms then
      -- The clock has gone back.
      since, state.limits_changed_at = call.now_ms, call.now_ms
    end
  end
  return history.read(call) >= since or call.now_ms >= since + RULES_STAY_MILLIS
end

-- The caller's rules if they come into force with the next window, else nil.
function in_force.rules_of_next_window(keys, state, call)
  local rules = state.own.has_boundary and call.rules
  return rules and differs_from_rules(state, rules) and in_force.may_change(keys, state, call) and rules or nil
end

-- The length of the next window. `rules`: from `in_force.rules_of_next_window`.
function in_force.length_of_next_window(state, rules)
  if rules and rules.own.algorithm ~= 'fixed_window' then
    return rules.own.window
  elseif state.next_window > 0 then
    return state.next_window
  end
  return (rules and not state.window_is_set and rules or state).own.window
end

-- The maximum of the next window if other limits come into force with it, else nil. `rules`: as above.
function in_force.max_of_next_window(state, call, rules)
  if rules and not in_force.has_window_of_rules(state, call) then
    return state.max_is_set and state.own.max or rules.own.max
  end
end

-- Whether rules with another window wait for the boundary, and may make room for waiters there.
function in_force.awaits_boundary(keys, state, call)
  return waits_for_boundary(state, call) and in_force.may_change(keys, state, call)
end

-- Takes the own limit of rules that come into force now, if it is another kind, or has another window without a boundary.
local function take_own(keys, state, call)
  local own, declared = state.own, call.rules.own
  if kinds.is_same(own, declared) and (own.algorithm == 'fixed_window' or own.window == declared.window) then
    return
  end
  local ended = { start = own.start, window = own.window }
  key_limits.take_own(keys, state, declared, call)
  local ends_window = not own.has_boundary and (kinds.has_boundary(declared) or declared.window ~= ended.window)
  if ends_window and keys.only_looks then
    state.hits = 0
  elseif ends_window then
    -- The ids of its first window begin with that. Those of a period of another length are remembered in another way.
    past_requests.end_window(keys, state, call, ended, redis.call('EXISTS', keys.requests) == 1)
    state.rolled = true
  end
end

-- Takes the maxima, the kind of the own limit and the further limits of rules that come into force now.
function in_force.take_maxima(keys, state, call)
  local rules, max_before = call.rules, state.own.max
  take_own(keys, state, call)
  local own = state.own
  own:set_max(state.max_is_set and max_before or rules.own.max)
  state.queue_max = state.queue_max_is_set and state.queue_max or rules.queue_max
  state.made_room = state.made_room or own.max > max_before
  state.limits_changed = true
  state.limits_changed_at = call.now_ms
  key_limits.take_further(keys, state, rules, call)
end

-- Begins the window of the own limit that holds this time, with the limits that come into force with it. Returns whether another one
-- has begun. `call`: nil if it knows no rules.
function in_force.begin_window(keys, state, now_ms, call)
  local rules = call and in_force.rules_of_next_window(keys, state, call)
  if not state.own:roll(state, now_ms, in_force.length_of_next_window(state, rules)) then
    return false
  end
  state.denied, state.rolled = 0, true
  if keys.only_looks then
    state.hits, state.own.has_no_ids = 0, state.own.has_boundary
  end
  if state.next_window > 0 then
    state.window_is_set, state.limits_changed, state.next_window = true, true, 0
  end
  if rules then
    in_force.take_maxima(keys, state, call)
  end
  return true
end

-- Takes rules that come into force in mid-window, for waiters: without checks, nobody else would.
function in_force.take_for_waiters(keys, state, call)
  local takes = not waits_for_boundary(state, call) and differs_from_rules(state, call.rules)
  if takes and in_force.may_change(keys, state, call) then
    in_force.take_maxima(keys, state, call)
  end
end

return in_force
