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
--@include lib/chunks
--@include lib/hits
--@include lib/turns

local function lease_number(start, call)
  return math.floor(start / call.lease)
end

local function begin_turn(keys, state)
  state.turn = next_turn(state.turn)
  redis.call('UNLINK', keys.past_requests[state.turn])
end

-- Keeps the ids of the window that has ended apart from those of the one that begins.
-- `ended`: the start and the length of that window. Its own length decides whether its ids are in the set of a turn
-- already: the next window may be shorter.
-- `has_requests`: the ended window may have a set. If it has none, an UNLINK would let a new key into a full memory
-- (`decide_in_full_memory` in lib/instance).
local function end_window_of_requests(keys, state, call, ended, has_requests)
  forget_all_hits(keys, state)
  if not windows_share_set(call, ended.window) then
    if has_requests then
      state.turn = next_turn(state.turn)
      keep_requests(keys.requests, keys.past_requests[state.turn])
    end
    return
  end
  if has_requests then
    redis.call('UNLINK', keys.requests)
  end
  if lease_number(ended.start, call) ~= lease_number(state.start, call) then
    begin_turn(keys, state)
  end
end

-- Adds ids to the approved ones. An id that is there already does not count again. `all_hits`: the hits of each, if any
-- has more than one.
local function add_requests(keys, state, call, ids, all_hits)
  if not all_hits then
    state.approved = state.approved + call_in_chunks('SADD', keys.requests, ids)
  else
    for i, id in ipairs(ids) do
      if redis.call('SADD', keys.requests, id) == 1 then
        state.approved = state.approved + all_hits[i]
        if all_hits[i] ~= ONE_HIT then
          write_hits(keys, state, id, all_hits[i])
        end
      end
    end
  end
  if windows_share_set(call, state.window) then
    call_in_chunks('SADD', keys.past_requests[state.turn], ids)
  end
end

-- How many ids are approved in the current window.
local function count_ids(keys, state)
  return state.hits == 1 and redis.call('SCARD', keys.requests) or state.approved
end

-- An approval takes less than before.
local function make_room(state, call)
  state.made_room = true
  state.released_at = call.now_ms
end

-- Whether to expect that the queue gets room before the window ends: something was given back in this window or the last.
local function expects_release(keys, state)
  local released_at = state.released_at or tonumber(redis.call('HMGET', keys.state, 'released')[1])
  return released_at ~= nil and released_at >= state.start - state.window
end

-- Releases the ids among these that are approved in the current window, with all hits. Returns how many there are.
local function release_requests(keys, state, call, ids)
  local released, hits = 0, 0
  if state.hits == 0 then
    released = call_in_chunks('SREM', keys.requests, ids)
    hits = released
  else
    for _, id in ipairs(ids) do
      if redis.call('SREM', keys.requests, id) == 1 then
        released = released + 1
        hits = hits + read_hits(keys, state, id)
        forget_hits(keys, state, id)
      end
    end
  end
  state.approved = state.approved - hits
  if hits > 0 then
    make_room(state, call)
  end
  return released
end

-- Gives an approval of the current window other hits. Returns whether there is such an approval.
local function amend_request(keys, state, call, id, hits)
  if redis.call('SMISMEMBER', keys.requests, id)[1] == 0 then
    return false
  end
  local before = read_hits(keys, state, id)
  if hits == before then
    return true
  elseif hits == ONE_HIT then
    forget_hits(keys, state, id)
  else
    write_hits(keys, state, id, hits)
  end
  state.approved = state.approved + hits - before
  if hits < before then
    make_room(state, call)
  end
  return true
end

-- Remembers released and withdrawn ids, so that a settle that asks about them late, or a second time, does not put them
-- back. Approvals and releases without end would let the set grow until the window ends, so a full set ends its turn
-- earlier.
local function remember_requests(keys, state, call, ids)
  if redis.call('SCARD', keys.past_requests[state.turn]) + #ids > call.max_ids then
    begin_turn(keys, state)
  end
  call_in_chunks('SADD', keys.past_requests[state.turn], ids)
  state.has_past = true
  state.changed = true
end

-- The ids among these that were approved, in this window or in one that is remembered: id -> true.
local function find_approved(keys, ids)
  local approved = {}
  for _, name in ipairs({ keys.requests, unpack(keys.past_requests) }) do
    for i, is_member in ipairs(list_in_chunks('SMISMEMBER', name, ids)) do
      if is_member == 1 then
        approved[ids[i]] = true
      end
    end
  end
  return approved
end

-- When the ids approved in this window may be forgotten, which can be after the end of the instance. The state, which
-- has the turn, is kept for as long.
local function remembered_until(state, call)
  return windows_share_set(call, state.window) and state.start + state.window + (TURNS - 1) * call.lease or 0
end

-- Sets when the sets to which ids were added expire.
local function expire_requests(keys, state, call, expire_at)
  if state.approved > 0 or state.hits == 1 then
    redis.call('PEXPIREAT', keys.requests, expire_at)
  end
  if state.hits == 1 then
    redis.call('PEXPIREAT', name_of_hits(keys), expire_at)
  end
  if state.has_past or (windows_share_set(call, state.window) and state.approved > 0) then
    redis.call('PEXPIREAT', keys.past_requests[state.turn], expire_at)
  end
end

-- The same if nothing but approvals was added. A set that had ids before has its expiry already.
local function expire_new_requests(keys, state, call, expire_at)
  local added = state.approved - state.stored_approved
  if redis.call('SCARD', keys.requests) == added then
    redis.call('PEXPIREAT', keys.requests, expire_at)
  end
  if windows_share_set(call, state.window) and redis.call('SCARD', keys.past_requests[state.turn]) == added then
    redis.call('PEXPIREAT', keys.past_requests[state.turn], expire_at)
  end
end
