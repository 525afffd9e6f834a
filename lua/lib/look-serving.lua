-- Serves the queue of a key that is only looked at (lib/look), in the state and nowhere else.

local holds = require 'lib/holds'
local key_limits = require 'limits/key-limits'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'

local look_serving = {}

-- How many more approvals may be held.
function look_serving.free_holds(state)
  return state.max_holds == 0 and math.huge or state.max_holds - state.held_ids + state.unclaimed
end

-- Counts waiters that would be approved. `left`: what they leave of the limits.
local function count_served(state, call, served, left)
  for i, limit in ipairs(state.limits) do
    limit:count(limit:free() - left.limits[i].free)
  end
  for _, waiter in ipairs(served) do
    local held_millis = waiter.keep or waiter.hold
    if held_millis then
      local lapses = call.now_ms + held_millis
      local first = stored.has_holds(state) and math.min(state.first_lapse, lapses) or lapses
      state.held, state.held_ids = state.held + waiter.hits, state.held_ids + 1
      holds.set_lapses(state, first, math.max(state.last_lapse, lapses))
      state.unclaimed = state.unclaimed + (waiter.hold and 0 or 1)
    end
  end
  state.served = call.now_ms
end

-- Approves waiters from the head of the queue in the state. Returns them, and whether the head needs more than is left.
local function take_heads(keys, state, call, tally)
  local left = { limits = key_limits.left(keys, state, call), holds = look_serving.free_holds(state) }
  local most, served, is_blocked = math.min(math.ceil(state.own:free()), serving.MOST_SERVED), {}, false
  for _, waiter in ipairs(queue.first_waiters(keys, state, tally, call.now_ms, most, serving.MOST_TAKEN)) do
    is_blocked = not queue.takes_its_room(state, left, waiter)
    if is_blocked then
      state.head_hits = waiter.hits
      break
    end
    served[#served + 1] = waiter
  end
  if #served > 0 then
    count_served(state, call, served, left)
  end
  return served, is_blocked
end

-- Serves the queue in the state, as lib/serving would for a check. Returns how many still wait, and how many it has served.
function look_serving.serve(keys, state, call, tally)
  if tally.places > 0 then
    recovery.begin_if_redis_was_down(state, tally, call)
  end
  local waiting = recovery.count_waiting(state, tally)
  if waiting == 0 or room.is_closed(state) then
    return waiting, 0
  end
  key_limits.begin_serving(state)
  local served, is_blocked = {}, false
  if key_limits.fit(state, 1) then
    served, is_blocked = take_heads(keys, state, call, tally)
    waiting = waiting - #served
  end
  local has_room = key_limits.fit(state, 1)
  if not has_room then
    state.head_hits = nil
  end
  state.serves_more = waiting > 0 and has_room and not is_blocked
  if waiting == 0 then
    key_limits.end_serving(state)
  end
  return waiting, #served
end

return look_serving
