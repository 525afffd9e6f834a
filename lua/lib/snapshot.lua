-- A key as of now, for scripts that write nothing.

local group_limits = require 'limits/group-limits'
local heads = require 'queue/heads'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local limits_text = require 'lib/limits-text'
local lists = require 'queue/lists'
local pause = require 'lib/pause'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'

local snapshot = {}

-- Returns the state, the tally of its queue, and how many wait; nil if there is no such key. A window that has ended
-- counts as empty, and a key that has been idle for too long as removed. `call`: of a script that knows rules, or nil.
function snapshot.at(keys, now_us, call)
  local now_ms = math.floor(now_us / 1000)
  keys.is_read_only = true
  local state = stored.read(keys.state)
  if not state then
    return nil
  end
  if call then
    key_limits.take_calendars(state, call)
  end
  group_limits.begin(keys, state, call or { now_us = now_us, now_ms = now_ms })
  recovery.begin_by_now(state, now_ms)
  key_limits.ask_all(state, 'move', now_us, state)
  if call then
    recovery.note_call(state, call)
  end
  recovery.end_past(state, now_ms)
  pause.end_past(state, now_ms)
  holds.end_lapsed(keys, state, now_ms)
  local tally = replicas.load(keys, now_ms)
  local may_be_idle = room.may_be_idle(state, now_ms)
  if may_be_idle and call then
    -- A call that knows its history would keep the key for replicas that may come back.
    recovery.begin_if_redis_was_down(state, tally, call)
  end
  if may_be_idle and recovery.count_waiting(state, tally) == 0 then
    return nil
  end
  for _, limit in ipairs(key_limits.roll_further(state, now_ms)) do
    limit.has_no_ids = limit.has_boundary
  end
  in_force.begin_window(keys, state, now_ms, call)
  return state, tally, recovery.count_waiting(state, tally)
end

-- What the scripts reply of a key. inspect.lua says what it is.
function snapshot.describe(state, waiting, now_ms)
  local counted = {}
  for i, limit in ipairs(state.limits) do
    counted[i] = {
      used = limit.used, millisToWindowEnd = limit:ends() - now_ms,
      windowMillis = limit.window_varies and limit:length() or nil,
    }
  end
  return {
    limits = limits_text.format(state), counted = counted, denied = state.denied, waiting = waiting, held = state.held,
    pausedMillis = math.max(0, state.paused_until - now_ms),
  }
end

-- Counts waiters that would be approved. `left`: what they leave of the limits.
local function count_served(state, call, served, left)
  local held_before = {}
  for limit in pairs(left.limits) do
    held_before[limit] = limit:held(state)
  end
  for _, waiter in ipairs(served) do
    if waiter.keepMillis or waiter.holdMillis then
      waiter.state = waiter.keepMillis and requests.UNCLAIMED or requests.HELD
      holds.count(state, call, waiter)
    end
  end
  for limit, of_limit in pairs(left.limits) do
    limit:count(limit:free() - of_limit.free, limit:held(state) - held_before[limit])
  end
  state.served = call.now_ms
end

-- Approves waiters in the order of their turns, in the state. Returns those approved and those stopped, and whether only such
-- are left. `served`: what `snapshot.serve` returns, which gets how many were approved by their lists.
local function take_heads(state, call, tally, served)
  local most = math.min(math.ceil(state.own:free()), serving.MOST_SERVED)
  local function note(entry, counts, stops, of)
    local list = entry.list and entry.list.id or lists.FIFO
    if stops then
      table.insert(served.stops, { of = of, stops = stops })
    elseif counts then
      served.by_list[list] = (served.by_list[list] or 0) + 1
    end
  end
  local approved, stopped, is_over = heads.pick(state, tally, served.walk, served.left, call.now_ms, most, note)
  return approved, stopped, is_over and (#stopped > 0 or state.groups ~= nil)
end

-- Serves the queue in the state and nowhere else, as lib/serving would for a check. Returns how many still wait, and what it has
-- done: how many it has served by their lists, where its walk over the waiters is, the waiters that the walk has stopped, and what
-- is left of the limits.
function snapshot.serve(keys, state, call, tally)
  local served = { by_list = {}, stops = {} }
  recovery.begin_if_redis_was_down(state, tally, call)
  local waiting = recovery.count_waiting(state, tally)
  if waiting == 0 or room.is_closed(state) then
    return waiting, served
  end
  key_limits.serve(state, true)
  local is_blocked = false
  if key_limits.fit(state, 1) then
    served.walk = heads.walk(keys, state, call, tally, serving.MOST_SERVED, serving.MOST_TAKEN)
    served.left = serving.left_of(keys, state, call)
    local approved, stopped
    approved, stopped, is_blocked = take_heads(state, call, tally, served)
    if #approved > 0 then
      count_served(state, call, approved, served.left)
      waiting = waiting - #approved
    end
    state.stopped_heads = is_blocked and stopped or nil
    state.groups_stopped_until = state.groups and state.lists and served.walk:stopped_until(state, call.now_ms)
  end
  local has_room = key_limits.fit(state, 1)
  if not has_room then
    state.stopped_heads = nil
  end
  state.serves_more = waiting > 0 and has_room and not is_blocked
  if waiting == 0 then
    key_limits.serve(state, false)
  end
  return waiting, served
end

-- Whether a check of a lane or a group, or without either, would pass those who still wait if it fits. `served`: from
-- `snapshot.serve`.
function snapshot.is_next(keys, state, call, tally, served, list, hits)
  local walk = served.walk
  if not state.lists or not walk then
    return false
  end
  local place = heads.place_of_newcomer(keys, state, call, walk, list, hits)
  for _, stopped in ipairs(served.stops) do
    if heads.is_before_newcomer(place, stopped.of) and stopped.stops(place.id) then
      return false
    end
  end
  return heads.is_next(state, call, tally, walk, served.left, place)
end

return snapshot
