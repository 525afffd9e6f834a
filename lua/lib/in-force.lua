-- Which limits are in force if callers have different rules, as in a rollout. The limits of a key, its window's length
-- and its maxima, are one unit: the window of one caller with the maximum of another would approve more than either.
-- They change together at a boundary. If the length stays the same, the maxima change at once. Limits without a
-- boundary change at once.
--
-- The newer rules win. A caller's rules are newer if they were loaded after the limits in force came into force. If
-- they were loaded before, it is unknown which rules are newer. Then the limits stay, so that callers do not undo each
-- other's changes with each check, but at most for RULES_STAY_MILLIS: the caller that brought them may be gone.
--
-- `changed`: since when the limits are in force, in ms since 1970; absent while they are the first ones of the key. A
-- limit that a request has set does not come from the rules, and stays.

local group_limits = require 'limits/group-limits'
local key_limits = require 'limits/key-limits'
local kinds = require 'limits/kinds'
local limits_text = require 'lib/limits-text'
local past_requests = require 'lib/past-requests'
local recovery = require 'lib/recovery'

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
  return recovery.read_history(call) >= since or call.now_ms >= since + RULES_STAY_MILLIS
end

-- The caller's rules if they come into force with the next window, else nil.
function in_force.rules_of_next_window(keys, state, call)
  local rules = state.own.has_boundary and call.rules
  return rules and differs_from_rules(state, rules) and in_force.may_change(keys, state, call) and rules or nil
end

-- The length of the next window. `rules`: from `in_force.rules_of_next_window`.
function in_force.length_of_next_window(state, rules)
  if rules and not rules.own.takes_window then
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
  if kinds.is_same(own, declared) and (own.takes_window or own.window == declared.window) then
    return
  end
  local ended = { start = own.start, window = own.window }
  key_limits.take_own(keys, state, declared, call)
  local ends_window = not own.has_boundary and (kinds.has_boundary(declared) or declared.window ~= ended.window)
  if ends_window and keys.is_read_only then
    state.hits = 0
  elseif ends_window then
    -- The ids of its first window begin with that. Those of a period of another length are remembered in another way.
    past_requests.end_window(keys, state, call, ended, redis.call('EXISTS', keys.requests) == 1)
    state.rolled = true
  end
end

local function take_further(keys, state, call)
  local groups_text = state.groups_text
  key_limits.take_further(keys, state, call.rules, call)
  if state.groups_text ~= groups_text then
    group_limits.take_rules(keys, state, call)
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
  take_further(keys, state, call)
end

-- Begins the window of the own limit that holds this time, with the limits that come into force with it. Returns whether another one
-- has begun. `call`: nil if it knows no rules.
function in_force.begin_window(keys, state, now_ms, call)
  local rules = call and in_force.rules_of_next_window(keys, state, call)
  if not state.own:roll(state, now_ms, in_force.length_of_next_window(state, rules)) then
    return false
  end
  state.denied, state.rolled = 0, true
  if keys.is_read_only then
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

-- The limits that requests have set. One stays until the key is removed, or until the rules of the window no longer allow
-- it. A limit that no request has set comes from the rules.

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
  if not length or not state.own.takes_window then
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
function in_force.configure(keys, state, call, said, begins_key)
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
    take_further(keys, state, call)
  end
  state.limits_changed = limits_text.format(state) ~= state.limits_text
end

-- What a caller says of the calendars of its rules (lib/limits-text). A caller knows Redis's time from the last answer, so
-- what it says may be out of date: Redis's clock has gone back over a midnight, or the caller has heard of Redis for the
-- first time.

-- Fails the call before it has changed anything, with Redis's time in ms since 1970, if that is in no window that the caller
-- brings. The caller is to call again, with the windows for that time.
function in_force.require_current_calendars(call)
  for _, windows in pairs(call.rules.calendars) do
    if call.now_ms < windows.start or call.now_ms >= windows.next_ends then
      error(string.format('STALE %.0f', call.now_ms), 0)
    end
  end
end

return in_force
