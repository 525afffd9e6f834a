-- When the limits of a key have room for those who wait, and what they have left.

local in_force = require 'lib/in-force'
local pause = require 'lib/pause'
local recovery = require 'lib/recovery'

local room = {}

-- Whether nobody is approved now, whatever the limits have left.
function room.is_closed(state)
  return recovery.is_on(state) or pause.is_on(state)
end

-- Until when the key is paused or recovers, in ms since 1970; 0 if nobody is approved later because of that.
local function closed_until(state)
  return math.max(state.recovery_until, state.paused_until)
end

-- When a limit has more room, but not before the key is open again. If the limit has room already, that time alone
-- counts.
local function at_of(state, call, limit)
  local opens = closed_until(state)
  return opens > 0 and not limit:is_full(state, call) and opens or math.max(limit:room_at(state), opens)
end

-- The same for all limits of a key: when all that are full have room, or, if none is full, when any has more.
local function at_of_all(state, call)
  local full_until, more_at = nil, math.huge
  for _, limit in ipairs(state.limits) do
    local time = limit:room_at(state)
    if limit:is_full(state, call) then
      full_until = math.max(full_until or 0, time)
    end
    more_at = math.min(more_at, time)
  end
  local opens = closed_until(state)
  return opens > 0 and not full_until and opens or math.max(full_until or more_at, opens)
end

-- When there may be room for waiters, in ms since 1970.
function room.at(state, call)
  return (#state.limits == 1 and at_of or at_of_all)(state, call, state.own)
end

-- Microseconds until waiters may be served. 0: another call can serve some at once.
function room.micros_to(keys, state, call)
  if state.serves_more and not room.is_closed(state) then
    return 0
  end
  local time = room.at(state, call)
  -- The rules that come into force at the boundary may not have the limit that is full.
  if #state.limits > 1 and in_force.awaits_boundary(keys, state, call) then
    time = math.min(time, math.max(state.own.start + state.own.window, closed_until(state)))
  end
  return time * 1000 - call.now_us
end

-- The fewest microseconds until a check that joined the queue now would have its turn, if nobody left the queue and
-- nothing was released before. `before`: how many wait, of which each needs one hit at least. `hits`: those of the
-- check.
function room.micros_to_turn(keys, state, call, before, hits)
  local micros = room.micros_to(keys, state, call)
  local length = in_force.length_of_next_window(state, in_force.rules_of_next_window(keys, state, call))
  for i, limit in ipairs(state.limits) do
    micros = math.max(micros, limit:micros_to_turn(state, call, before, hits, i == 1 and length or limit.window))
  end
  return micros
end

-- What counts of the limits for checks: a number, or, in a key with further limits, a text `<used>:<microseconds until
-- there is room>`, with `,<name>=` and the same after it for each further limit.
function room.used(state, call)
  if #state.limits == 1 then
    return pause.used(state, state.own)
  end
  local texts = {}
  for i, limit in ipairs(state.limits) do
    local micros = at_of(state, call, limit) * 1000 - call.now_us
    local name = limit.name and limit.name .. '=' or ''
    texts[i] = string.format('%s%.0f:%.0f', name, pause.used(state, limit), micros)
  end
  return table.concat(texts, ',')
end

return room
