-- The held approvals of a key, by what counts them. `state.held` and `state.held_ids` are the hits and the number of all;
-- `state.lane_holds` has the hits and the number in each lane (queue/lists): list -> { hits, ids }. It is not changed, but replaced.

local held = {}

-- The hits and the number of the held approvals that a limit counts.
function held.counted_by(limit, state)
  if limit.group then
    return limit.group.held, limit.group.held_ids
  elseif not limit.lanes then
    return state.held, state.held_ids
  end
  local hits, ids = 0, 0
  for lane in pairs(limit.lanes) do
    local of_lane = state.lane_holds[lane]
    if of_lane then
      hits, ids = hits + of_lane.hits, ids + of_lane.ids
    end
  end
  return hits, ids
end

-- The same by what an approval takes of the limit.
function held.taken_of(limit, state)
  local hits, ids = held.counted_by(limit, state)
  return limit.counts == 'hits' and hits or ids
end

-- No hold lapses before this time, in ms since 1970; math.huge if there is none.
function held.first_lapse(state)
  return state.first_lapse > 0 and state.first_lapse or math.huge
end

-- When the next lapse may make room in a limit, in ms since 1970; math.huge if none may. An approval that nobody has claimed is
-- given back to every limit, and another one only where it counts as a held one.
function held.next_lapse(limit, state)
  if limit.group and not limit:is_full_of_held(state) then
    -- Others hold more, and a lapse tells which group has more room.
    return math.huge
  end
  return (limit:has_holds() or state.unclaimed + state.unclaimed_held > 0) and held.first_lapse(state) or math.huge
end

-- The holds by lane with these more in a lane. `lane`: nil for none.
function held.with(lane_holds, lane, hits, ids)
  if not lane then
    return lane_holds
  end
  local with, before = {}, held.of_lane(lane_holds, lane)
  for other, of_other in pairs(lane_holds) do
    with[other] = of_other
  end
  with[lane] = before.ids + ids > 0 and { hits = before.hits + hits, ids = before.ids + ids } or nil
  return with
end

-- What a lane holds.
function held.of_lane(lane_holds, lane)
  return lane_holds[lane] or { hits = 0, ids = 0 }
end

-- The lanes that hold something in either, as a set.
function held.lanes_of_both(one, other)
  local lanes = {}
  for _, lane_holds in ipairs({ one, other }) do
    for lane in pairs(lane_holds) do
      lanes[lane] = true
    end
  end
  return lanes
end

return held
