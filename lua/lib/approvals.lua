-- The approvals of a key: those that count in its limits (limits/key-limits), and among them those that are held
-- (lib/holds).
--
-- The terms of an approval are its hits, its list (queue/lists) if it has a lane or a group, and, if it is held, the length of its
-- hold in ms, and who holds it if its check has said so.

local chunks = require 'lib/chunks'
local given_back = require 'lib/given-back'
local holds = require 'lib/holds'
local key_limits = require 'limits/key-limits'
local kinds = require 'limits/kinds'
local lists = require 'queue/lists'
local own_ids = require 'limits/own-ids'

local approvals = {}

-- While a slot of a cluster moves, Redis fails a command on a name that it does not find. This meets the names that are
-- built here before anything is written.
local function require_built_names(keys, state)
  redis.call('EXISTS', holds.name(keys), holds.order_name(keys), unpack(key_limits.built_names(keys, state)))
end

-- Whether an approval of one hit takes one of the own limit and nothing else of the key.
local function counts_once(state)
  return #state.limits == 1 and own_ids.have_one_each(state)
end

-- Approves requests. An id that is approved already does not count again. `terms`: those of each, if any has more than
-- one hit or a list, or is held.
function approvals.add(keys, state, call, ids, terms)
  if terms or #state.limits > 1 then
    require_built_names(keys, state)
  end
  if not terms then
    for _, limit in ipairs(state.limits) do
      if kinds.counts_list(limit) then
        limit:take_all(keys, state, call, ids)
      end
    end
    return
  end
  for i, id in ipairs(ids) do
    local hits, hold, lane = terms[i].hits, terms[i].holdMillis, lists.lane_of(terms[i].list)
    if hold then
      holds.add(keys, state, call, id, hits, hold, terms[i].holder, lane)
    else
      key_limits.take(keys, state, call, id, hits, false, lane)
    end
  end
end

-- Releases the ids among these that are approved, with all hits. `is_unused`: nobody has got the approvals, so that
-- they count in no limit. Returns how many there are.
function approvals.release(keys, state, call, ids, is_unused)
  return given_back.note_if_less(state, call, function()
    if counts_once(state) then
      return state.own:give_all_back(keys, ids)
    end
    local released = 0
    for _, id in ipairs(ids) do
      local was_held = holds.release(keys, state, id) ~= nil
      local had_any = key_limits.give_back(keys, state, id, was_held, is_unused)
      released = released + ((was_held or had_any) and 1 or 0)
    end
    return released
  end)
end

-- Gives an approval that is not held other hits, in the current window of each limit. Returns whether there is such an
-- approval.
function approvals.amend(keys, state, call, id, hits)
  return given_back.note_if_less(state, call, function()
    return key_limits.amend(keys, state, id, hits, false)
  end)
end

-- The hits of an approval that counts, as far as they are known; nil if it does not count.
function approvals.hits_of(keys, state, id)
  local _, _, hits = holds.read(keys, state, id)
  return hits or key_limits.taken_by(keys, state, id)
end

-- The ids among these that were approved, in this window or in one that is remembered, or are held: id -> when its hold
-- lapses, or math.huge without a hold.
function approvals.find(keys, ids, now_ms)
  local approved = {}
  for _, name in ipairs({ keys.requests, unpack(keys.past_requests) }) do
    for i, is_member in ipairs(chunks.list('SMISMEMBER', name, ids)) do
      if is_member == 1 then
        approved[ids[i]] = math.huge
      end
    end
  end
  for i, hold in ipairs(chunks.list('HMGET', holds.name(keys), ids)) do
    if hold then
      local lapses, millis = holds.parse(hold)
      if lapses > now_ms then
        -- The clock may have gone back.
        approved[ids[i]] = math.min(lapses, now_ms + millis)
      end
    end
  end
  return approved
end

return approvals
