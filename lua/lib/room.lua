-- When the limits of a key have room for those who wait, and what they have left.

local held = require 'limits/held'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local kinds = require 'limits/kinds'
local lists = require 'queue/lists'
local pause = require 'lib/pause'
local recovery = require 'lib/recovery'
local stored = require 'lib/stored'

local room = {}

-- Whether nobody is approved now, whatever the limits have left.
function room.is_closed(state)
  return recovery.is_on(state) or pause.is_on(state)
end

-- Whether the key has been idle for too long, if nobody waits. Its own field decides that. Redis's expiry only frees memory.
function room.may_be_idle(state, now_ms)
  return now_ms >= state.expires and now_ms >= state.groups_until and not stored.has_holds(state) and not room.is_closed(state)
end

-- Until when the key is paused or recovers, in ms since 1970; 0 if nobody is approved later because of that.
local function closed_until(state)
  return math.max(state.recovery_until, state.paused_until)
end

-- When a limit has more room, but not before the key, and the group whose limit it is, are open again. If the limit has room already,
-- that time alone counts.
local function at_of(state, call, limit)
  local opens = limit.group and math.max(closed_until(state), limit.group.paused_until) or closed_until(state)
  return opens > 0 and not limit:is_full(state, call) and opens or math.max(limit:room_at(state), opens)
end

-- Waiters that are let go at an even pace are settled no more often than this, in ms.
local LEAST_BETWEEN_SETTLES = 20

-- Whether the holds of a key are full, so that a lapse may let the next one begin.
local function are_holds_full(state)
  return state.max_holds > 0 and state.held_ids - state.unclaimed >= state.max_holds
end

-- When what stops a waiter may have ended by itself: when all limits that it lacks room in may have it, or, if it lacks none,
-- when any has more or a hold may begin. `waiter`: its hits, its hold or nil, and its lane or group or nil, which says what
-- limits count it.
local function at_for(state, call, waiter)
  local lacking_until, more_at = nil, waiter.holdMillis and are_holds_full(state) and held.first_lapse(state) or math.huge
  for _, limit in ipairs(key_limits.counting(state, waiter.list and waiter.list.id)) do
    local time = limit:room_at(state, waiter.hits)
    if limit:is_full(state, call) or not limit:fits_into(limit:free(), waiter.hits) then
      lacking_until = math.max(lacking_until or 0, time)
    end
    more_at = math.min(more_at, time)
  end
  local opens = closed_until(state)
  if state.groups and waiter.list then
    opens = math.max(opens, state.groups:paused_until(waiter.list.id))
  end
  return opens > 0 and not lacking_until and opens or math.max(lacking_until or more_at, opens)
end

-- The same for those that a head stops and that are not of its lane or group; nil if it stops none of them.
local function at_for_others(state, call, head)
  local time = nil
  for _, limit in ipairs(key_limits.counting(state)) do
    if limit:is_full(state, call) or not limit:fits_into(limit:free(), head.hits) then
      time = math.max(time or closed_until(state), limit:room_at(state, head.hits))
    end
  end
  return time
end

-- One hit, which the limits have no room for that count all lists.
local ANYBODY = { hits = 1 }

-- When there may be room for waiters, in ms since 1970. `state.stopped_heads`: the waiters that would be next, if each needs
-- more than is free. Groups that are stopped are not among them.
function room.at(keys, state, call)
  local time, have_own = math.huge, state.groups or #state.limits > 1
  for _, head in ipairs(state.stopped_heads or {}) do
    time = math.min(time, have_own and at_for_others(state, call, head) or at_for(state, call, head))
  end
  if not state.stopped_heads then
    time = at_for(state, call, ANYBODY)
  end
  if state.groups and state.lists then
    local stopped_until = keys.is_read_only and state.groups_stopped_until or lists.first_stopped_until(keys, '-inf')
    if stopped_until and key_limits.fit(state, 1) and not room.is_closed(state) then
      -- A lapse tells which group has more room.
      time = math.min(time, stopped_until, held.first_lapse(state))
    end
  end
  if time == math.huge then
    -- Only a release can make room, or other rules. Callers look again when the window ends.
    time = state.own:ends()
  end
  if state.served > 0 and key_limits.have_pace(state) then
    time = math.max(time, state.served + LEAST_BETWEEN_SETTLES)
  end
  return time
end

-- Whether the windows of the own limit alone make room, now and by the caller's rules.
local function has_only_windows(state, call)
  local own = state.own
  return #state.limits == 1 and #state.of_groups == 0 and own.takes_window and kinds.is_same(own, call.rules.own)
end

-- Microseconds from now until a time in ms since 1970, which is a whole number of microseconds except for rounding.
local function micros_until(time, call)
  return math.floor(time * 1000 + 0.5) - call.now_us
end

-- Microseconds until waiters may be served. 0: another call can serve some at once.
function room.micros_to(keys, state, call)
  if state.serves_more and not room.is_closed(state) then
    return 0
  end
  local time = room.at(keys, state, call)
  -- The rules that come into force at the boundary may not have the limit that is full.
  if not has_only_windows(state, call) and in_force.awaits_boundary(keys, state, call) then
    time = math.min(time, math.max(state.own:ends(), closed_until(state)))
  end
  return micros_until(time, call)
end

-- The fewest microseconds until a check that joined the queue now would have its turn, if nobody left the queue and
-- nothing was released before. `before`: how many wait, of which each needs one hit at least. `hits`: those of the
-- check. `list`: its lane or group, in which those before it wait; nil for none.
function room.micros_to_turn(keys, state, call, before, hits, list)
  local micros = room.micros_to(keys, state, call)
  if list then
    -- The waiters of other lists may need more.
    micros = math.min(micros, micros_until(at_for(state, call, { hits = hits, list = { id = list } }), call))
    micros = state.groups and math.max(micros, micros_until(state.groups:paused_until(list), call)) or micros
  end
  local rules = in_force.rules_of_next_window(keys, state, call)
  local length, max = in_force.length_of_next_window(state, rules), in_force.max_of_next_window(state, call, rules)
  local replaces_own = max and not kinds.is_same(state.own, rules.own)
  local replaces_further = max and state.further_text ~= rules.further_text
  for _, limit in ipairs(key_limits.counting(state, list)) do
    local is_own = limit == state.own
    local turn = limit:micros_to_turn(state, call, before, hits, is_own and length or limit.window, is_own and max)
    if is_own and replaces_own or not is_own and replaces_further then
      turn = math.min(turn, micros_until(state.own:ends(), call))
    end
    micros = math.max(micros, turn)
  end
  return micros
end

-- The same as callers are told it. With a maximum of 0 no turn ever comes: then the limits say when they may have room.
function room.micros_told(keys, state, call, before, hits, list)
  local micros = room.micros_to_turn(keys, state, call, before, hits, list)
  return micros < math.huge and micros or room.micros_to(keys, state, call)
end

-- What counts of a limit, and the microseconds until it has more room.
local function text_of(state, call, limit)
  local name = limit.name and limit.name .. '=' or ''
  local length = limit.window_varies and string.format(':%.0f', limit:length()) or ''
  local paused = not pause.is_on(state) and limit.group or state
  return string.format('%s%.0f:%.0f', name, pause.used(paused, limit), micros_until(at_of(state, call, limit), call)) .. length
end

-- What counts of the limits for checks: a number, or, in a key with further limits or whose own limit is no fixed window,
-- a text `<used>:<microseconds until there is more room>`, with `,<name>=` and the same after it for each further limit. The
-- window of a calendar has `:<length in ms>` after that.
function room.used(state, call)
  -- Waiters of groups that are stopped may have room before the window ends.
  if has_only_windows(state, call) and not state.groups then
    return pause.used(state, state.own)
  end
  local texts = {}
  for i, limit in ipairs(state.limits) do
    texts[i] = text_of(state, call, limit)
  end
  return table.concat(texts, ',')
end

-- The same of the limits that a group has to itself; nil for a list that has none. `list`: its id.
local function used_of_group(state, call, list)
  local group, texts = state.groups and list and state.groups:of(list), {}
  if not group or (#group.limits == 0 and group.paused_until == 0) then
    return nil
  end
  for i, limit in ipairs(group.limits) do
    texts[i] = text_of(state, call, limit)
  end
  if group.paused_until > 0 then
    texts[#texts + 1] = string.format('=0:%.0f', micros_until(group.paused_until, call))
  end
  return table.concat(texts, ',')
end

-- The same of the groups among some lists, by their ids; nil if none has limits to itself. The pause of a group comes last, without a
-- name: 0, and the microseconds until it ends.
function room.used_of_groups(state, call, some)
  local used = nil
  for _, list in ipairs(state.groups and some or {}) do
    local of_group = not (used and used[list.id]) and used_of_group(state, call, list.id)
    if of_group then
      used = used or {}
      used[list.id] = of_group
    end
  end
  return used
end

return room
