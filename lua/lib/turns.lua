-- When the turn of a request comes, as callers are told.

local room = require 'lib/room'

local turns = {}

-- The fewest microseconds until a turn, as `room.micros_to_turn` has it. With a maximum of 0 no turn ever comes. Then the
-- limits say when they may have room.
function turns.micros_to(keys, state, call, before, hits, list)
  local micros = room.micros_to_turn(keys, state, call, before, hits, list)
  return micros < math.huge and micros or room.micros_to(keys, state, call)
end

return turns
