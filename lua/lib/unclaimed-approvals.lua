-- The approvals that are kept for callers of kept places until a check claims them: a script can't know whether the caller is
-- still there. lib/named-requests has their records. If no check claims an approval in time, its hold lapses, and its request
-- is unknown from then on.
--
-- The state's fields:
--   unclaimed           how many of them are not held once they are claimed. So they take none of the holds that a key may have
--   unclaimed_held      how many are
--   lapsed_unclaimed    how many have lapsed since a reply told how many

local holds = require 'lib/holds'
local key_limits = require 'limits/key-limits'
local more = require 'lib/more'
local named_requests = require 'lib/named-requests'
local stored = require 'lib/stored'

local unclaimed_approvals = {}

local function count(state, hold, added)
  local name = hold and 'unclaimed_held' or 'unclaimed'
  more.set(state, name, math.max(0, state[name] + added))
end

-- An approval is kept for its caller. `hold`: how long it is held once it is claimed, or nil.
function unclaimed_approvals.note(state, hold)
  count(state, hold, 1)
end

-- It is kept for nobody any more.
local function note_end(state, record)
  count(state, record.hold, -1)
end

-- Whether somebody has removed the state that counts an approval, or its hold. A check must not take what nothing counts.
function unclaimed_approvals.is_lost(keys, state, record)
  return record.is == named_requests.GRANTED and holds.read(keys, state, record.request_id) == nil
end

-- Forgets an approval that is lost.
function unclaimed_approvals.forget_lost(keys, state, record)
  note_end(state, record)
  named_requests.forget(keys, { record.request_id })
end

-- An approval becomes what was asked for: it counts in the present windows, or is held from now on. It has counted as a held
-- one, so that nothing exceeds a maximum. `owner`: of the check that claims it.
function unclaimed_approvals.claim(keys, state, call, record, owner)
  local id, hits, hold = record.request_id, record.hits, record.hold
  if hold then
    holds.renew(keys, state, call, id, hold, nil, math.huge)
  else
    -- First, since a limit gives back no more than a vendor's report allows.
    key_limits.take_from_hold(keys, state, call, id, hits, holds.lane_of(keys, state, id))
    holds.release(keys, state, id)
  end
  note_end(state, record)
  local claimed = { request_id = id, hits = hits, hold = hold, owner = owner }
  named_requests.write(keys, state, call, named_requests.APPROVED, { claimed })
end

-- An approval is released before anybody has claimed it.
function unclaimed_approvals.end_released(state, record)
  note_end(state, record)
end

-- Nobody has claimed it in time.
function unclaimed_approvals.note_lapse(state)
  more.set(state, 'lapsed_unclaimed', state.lapsed_unclaimed + 1)
end

-- The unclaimed approvals among those whose holds have lapsed. `ids`: from `holds.end_lapsed`.
local function find_lapsed(keys, state, ids)
  if stored.has_holds(state) then
    return named_requests.find_granted(keys, state, ids)
  end
  return named_requests.find_all_granted(keys, state)
end

-- Holds have lapsed. Nobody has got the approvals among them that were unclaimed, so that they count in no limit.
function unclaimed_approvals.end_lapsed(keys, state, ids)
  local lapsed = find_lapsed(keys, state, ids)
  for _, record in ipairs(lapsed) do
    key_limits.give_back(keys, state, record.request_id, true, true)
    note_end(state, record)
    unclaimed_approvals.note_lapse(state)
  end
  named_requests.forget_granted(keys, lapsed)
  if not stored.has_holds(state) then
    -- A version that does not know them has ended some.
    more.set(state, 'unclaimed', 0)
    more.set(state, 'unclaimed_held', 0)
  end
end

-- The same for a call that only looks: its limits remove no ids.
function unclaimed_approvals.leave_out_lapsed(keys, state, ids)
  for _, record in ipairs(find_lapsed(keys, state, ids)) do
    key_limits.give_back(keys, state, record.request_id, true, true)
    note_end(state, record)
  end
end

-- How many have lapsed. The reply of the call tells it.
function unclaimed_approvals.take_lapsed(state)
  local lapsed = state.lapsed_unclaimed
  if lapsed > 0 then
    more.set(state, 'lapsed_unclaimed', 0)
  end
  return lapsed
end

return unclaimed_approvals
