-- Serves the queue of a key that is only looked at (lib/look), in the state and nowhere else.

local heads = require 'queue/heads'
local holds = require 'lib/holds'
local key_limits = require 'limits/key-limits'
local lists = require 'queue/lists'
local recovery = require 'lib/recovery'
local requests = require 'lib/requests'
local room = require 'lib/room'
local serving = require 'lib/serving'

local look_serving = {}

-- Counts waiters that would be approved. `left`: what they leave of the limits.
local function count_served(state, call, served, left)
  local held_before = {}
  for i, limit in ipairs(state.limits) do
    held_before[i] = limit:held(state)
  end
  for _, waiter in ipairs(served) do
    if waiter.keepMillis or waiter.holdMillis then
      waiter.state = waiter.keepMillis and requests.UNCLAIMED or requests.HELD
      holds.count(state, call, waiter)
    end
  end
  for i, limit in ipairs(state.limits) do
    limit:count(limit:free() - left.limits[limit].free, limit:held(state) - held_before[i])
  end
  state.served = call.now_ms
end

-- Approves waiters in the order of their turns, in the state. Returns those approved and those stopped, and whether only such
-- are left. `served`: what `look_serving.serve` returns, which gets how many were approved by their lists.
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
  return approved, stopped, is_over and #stopped > 0
end

-- Serves the queue in the state, as lib/serving would for a check. Returns how many still wait, and what it has done: how many it
-- has served by their lists, where its walk over the waiters is, the waiters that the walk has stopped, and what is left of the limits.
function look_serving.serve(keys, state, call, tally)
  local served = { by_list = {}, stops = {} }
  recovery.begin_if_redis_was_down(state, tally, call)
  local waiting = recovery.count_waiting(state, tally)
  if waiting == 0 or room.is_closed(state) then
    return waiting, served
  end
  key_limits.ask_all(state, 'begin_serving')
  local is_blocked = false
  if key_limits.fit(state, 1) then
    served.walk = heads.walk(keys, state, tally, serving.MOST_SERVED, serving.MOST_TAKEN)
    served.left = serving.left_of(keys, state, call)
    local approved, stopped
    approved, stopped, is_blocked = take_heads(state, call, tally, served)
    if #approved > 0 then
      count_served(state, call, approved, served.left)
      waiting = waiting - #approved
    end
    state.stopped_heads = is_blocked and stopped or nil
  end
  local has_room = key_limits.fit(state, 1)
  if not has_room then
    state.stopped_heads = nil
  end
  state.serves_more = waiting > 0 and has_room and not is_blocked
  if waiting == 0 then
    key_limits.ask_all(state, 'end_serving')
  end
  return waiting, served
end

-- Whether a check of a lane or a group, or without either, would pass those who still wait if it fits. `served`: from
-- `look_serving.serve`.
function look_serving.is_next(keys, state, call, tally, served, list, hits)
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

return look_serving
