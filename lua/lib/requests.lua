-- The ids of approved requests. One set is for the current window. Three sets, used in turns, are for windows
-- that have ended, and for released and withdrawn ids. Only the current set counts, and only its approvals
-- can be released. The others serve late calls: a check that is sent again, a settle after a late wake.
--
-- An approval is remembered for three windows after its own, or for two leases if three windows are shorter than a
-- lease. A replica that stalled may ask about it for that long. When a window ends, its set becomes the set of the
-- next turn. If three windows are shorter than a lease, a turn lasts a lease: all windows in it share its set, and
-- approved ids are added to it at once.
--
-- `state.turn` is the number of the set that began last.

local chunks = require 'lib/chunks'
local several_hits = require 'lib/several-hits'
local stored = require 'lib/stored'
local turns = require 'lib/turns'

local requests = {}

local function lease_number(start, call)
  return math.floor(start / call.lease)
end

local function begin_turn(keys, state)
  state.turn = turns.after(state.turn)
  redis.call('UNLINK', keys.past_requests[state.turn])
end

-- Keeps the ids of the window that has ended apart from those of the one that begins.
-- `ended`: the start and the length of that window. Its own length decides whether its ids are in the set of a turn
-- already: the next window may be shorter.
-- `has_requests`: the ended window may have a set. If it has none, an UNLINK would let a new key into a full memory
-- (`instance.decide_in_full_memory`).
function requests.end_window(keys, state, call, ended, has_requests)
  several_hits.forget_all(keys, state)
  if not turns.windows_share_set(call, ended.window) then
    if has_requests then
      state.turn = turns.after(state.turn)
      turns.keep(keys.requests, keys.past_requests[state.turn])
    end
    return
  end
  if has_requests then
    redis.call('UNLINK', keys.requests)
  end
  if lease_number(ended.start, call) ~= lease_number(state.start, call) then
    begin_turn(keys, state)
  end
  -- Longer windows from now on do not share it.
  state.has_past = has_requests and not turns.windows_share_set(call, state.window)
end

-- Adds ids to the approved ones, each with one hit. An id that is there already does not count again.
function requests.add(keys, state, call, ids)
  state.approved = state.approved + chunks.call('SADD', keys.requests, ids)
  if turns.windows_share_set(call, state.window) then
    chunks.call('SADD', keys.past_requests[state.turn], ids)
  end
end

-- Whether the set may have fewer ids than the window has approvals.
function requests.counts_ids_apart(state)
  return state.hits == 1 or stored.has_holds(state)
end

-- How many ids are approved in the current window.
function requests.count_ids(keys, state)
  return requests.counts_ids_apart(state) and redis.call('SCARD', keys.requests) or state.approved
end

-- An approval takes less than before.
function requests.make_room(state, call)
  state.made_room = true
  state.released_at = call.now_ms
end

-- Remembers released and withdrawn ids, so that a settle that asks about them late, or a second time, does not put them
-- back. Approvals and releases without end would let the set grow until the window ends, so a full set ends its turn
-- earlier.
function requests.remember(keys, state, call, ids)
  if redis.call('SCARD', keys.past_requests[state.turn]) + #ids > call.max_ids then
    begin_turn(keys, state)
  end
  chunks.call('SADD', keys.past_requests[state.turn], ids)
  state.has_past = true
  state.changed = true
end

-- When the ids approved in this window may be forgotten, and those that this call has remembered, which can be after the
-- end of the instance. The state, which has the turn, is kept for as long.
function requests.remembered_until(state, call)
  local since = turns.windows_share_set(call, state.window) and state.start + state.window or 0
  if state.has_past then
    since = math.max(since, call.now_ms)
  end
  return since > 0 and since + (turns.COUNT - 1) * call.lease or 0
end

-- Sets when the sets to which ids were added expire.
function requests.expire(keys, state, call, expire_at)
  if state.approved > 0 or state.hits == 1 then
    redis.call('PEXPIREAT', keys.requests, expire_at)
  end
  if state.hits == 1 then
    redis.call('PEXPIREAT', several_hits.name(keys), expire_at)
  end
  if state.has_past or (turns.windows_share_set(call, state.window) and state.approved > 0) then
    redis.call('PEXPIREAT', keys.past_requests[state.turn], expire_at)
  end
end

-- The same if nothing but approvals was added. A set that had ids before has its expiry already.
function requests.expire_new(keys, state, call, expire_at)
  local added = state.approved - state.stored_approved
  if redis.call('SCARD', keys.requests) == added then
    redis.call('PEXPIREAT', keys.requests, expire_at)
  end
  if turns.windows_share_set(call, state.window) and redis.call('SCARD', keys.past_requests[state.turn]) == added then
    redis.call('PEXPIREAT', keys.past_requests[state.turn], expire_at)
  end
end

return requests
