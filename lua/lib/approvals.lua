-- The approvals of a key: those of the current window (lib/requests), those that are held (lib/holds), and those in the
-- windows of further limits (lib/further).
--
-- The terms of an approval are its hits and, if it is held, the length of its hold in ms.

local chunks = require 'lib/chunks'
local further = require 'lib/further'
local holds = require 'lib/holds'
local requests = require 'lib/requests'
local several_hits = require 'lib/several-hits'
local stored = require 'lib/stored'
local turns = require 'lib/turns'

local approvals = {}

local function add_request_with_hits(keys, state, call, id, hits)
  if redis.call('SADD', keys.requests, id) == 0 then
    return
  end
  state.approved = state.approved + hits
  if hits ~= 1 then
    several_hits.write(keys, state, id, hits)
  end
  further.add(keys, state, id, hits, false)
  if turns.windows_share_set(call, state.window) then
    redis.call('SADD', keys.past_requests[state.turn], id)
  end
end

-- While a slot of a cluster moves, Redis fails a command on a name that it does not find. This meets the names that are
-- built here before anything is written.
local function require_names_of_terms(keys, state)
  redis.call(
    'EXISTS', several_hits.name(keys), holds.name(keys), holds.order_name(keys), unpack(further.names(keys, state))
  )
end

-- Approves requests. An id that is approved already does not count again. `terms`: those of each, if any has more than one
-- hit or is held, or the key has further limits.
function approvals.add(keys, state, call, ids, terms)
  if not terms then
    requests.add(keys, state, call, ids)
    return
  end
  require_names_of_terms(keys, state)
  for i, id in ipairs(ids) do
    local hits, hold = terms[i].hits, terms[i].hold
    if hold then
      holds.add(keys, state, call, id, hits, hold)
    else
      add_request_with_hits(keys, state, call, id, hits)
    end
  end
end

-- Whether to expect that the queue gets room before the window ends: an approval is held now, or something was given back
-- in this window or the last.
function approvals.expects_release(keys, state, call)
  if stored.has_holds(state) then
    return true
  end
  local released_at = state.released_at or tonumber(redis.call('HMGET', keys.state, 'released')[1])
  if not released_at then
    return false
  elseif released_at > call.now_ms then
    -- The clock has gone back.
    released_at, state.released_at = call.now_ms, call.now_ms
  end
  local earliest = state.start - state.window
  for _, limit in ipairs(state.further or {}) do
    earliest = math.min(earliest, limit.start - limit.window)
  end
  return released_at >= earliest
end

-- Returns whether the id was approved.
local function release_request(keys, state, id, is_unused)
  local hits = holds.release(keys, state, id)
  if not hits and redis.call('SREM', keys.requests, id) == 1 then
    hits = several_hits.read(keys, state, id)
    several_hits.forget(keys, state, id)
    state.approved = state.approved - hits
  end
  local is_released = further.release(keys, state, id, is_unused)
  return hits ~= nil or is_released
end

-- Releases the ids among these that are approved, with all hits. `is_unused`: nobody has got the approvals. Returns how
-- many there are.
function approvals.release(keys, state, call, ids, is_unused)
  local released, taken_before = 0, further.taken_of_all(state)
  if requests.counts_ids_apart(state) or state.further then
    for _, id in ipairs(ids) do
      released = released + (release_request(keys, state, id, is_unused) and 1 or 0)
    end
  else
    released = chunks.call('SREM', keys.requests, ids)
    state.approved = state.approved - released
  end
  if further.taken_of_all(state) < taken_before then
    requests.make_room(state, call)
  end
  return released
end

-- Gives an approval of the current window other hits. Returns whether there is such an approval.
local function amend_hits_of_window(keys, state, call, id, hits)
  if redis.call('SMISMEMBER', keys.requests, id)[1] == 0 then
    return false
  end
  local before = several_hits.read(keys, state, id)
  if hits == before then
    return true
  elseif hits == 1 then
    several_hits.forget(keys, state, id)
  else
    several_hits.write(keys, state, id, hits)
  end
  state.approved = state.approved + hits - before
  if hits < before then
    requests.make_room(state, call)
  end
  return true
end

-- The same for an approval of the current window of any limit.
function approvals.amend(keys, state, call, id, hits)
  local is_amended, more = further.amend(keys, state, id, hits)
  if more < 0 then
    requests.make_room(state, call)
  end
  return amend_hits_of_window(keys, state, call, id, hits) or is_amended
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
