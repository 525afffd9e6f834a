-- The ids of approved requests: one set for the current window, and by turns three sets for those of windows
-- that have ended, and for released and withdrawn ones. Only the current set counts and can be released
-- from. The others are there for those who have not heard of it yet: a check that is sent again, a waiter
-- whose wake comes late, a settle that is late itself.
--
-- An approval is remembered for three windows after its own and, where that is shorter than a lease, for two
-- leases: so long a replica that stood still may ask. When a window ends its set is renamed to that of the
-- next turn. Windows of which three are shorter than a lease share the set of a turn, which is a lease long,
-- and their ids are added to it at once.
--
-- `state.turn` is the number of the set that was begun last.
--@include lib/chunks

local TURNS = 3

local function share_turns(call)
  return TURNS * call.window < call.lease
end

local function lease_number(start, call)
  return math.floor(start / call.lease)
end

local function begin_turn(keys, state)
  state.turn = state.turn % TURNS + 1
  redis.call('UNLINK', keys.past_requests[state.turn])
end

-- Keeps the ids of the window that has ended apart from those of the one that begins.
--
-- Where there is no set, none is removed: Redis, when its memory is full, refuses a script at its first
-- write, and one that it lets pass, as UNLINK and RENAME, would open the way for all that follow.
local function end_window_of_requests(keys, state, call, ended_start)
  local has_requests = redis.call('EXISTS', keys.requests) == 1
  if not share_turns(call) then
    if has_requests then
      begin_turn(keys, state)
      redis.call('RENAME', keys.requests, keys.past_requests[state.turn])
    end
    return
  end
  if has_requests then
    redis.call('UNLINK', keys.requests)
  end
  if lease_number(ended_start, call) ~= lease_number(state.start, call) then
    begin_turn(keys, state)
  end
end

-- Adds ids to the approved ones. One that is there already does not count again.
local function add_requests(keys, state, call, ids)
  state.approved = state.approved + call_in_chunks('SADD', keys.requests, ids)
  if share_turns(call) then
    call_in_chunks('SADD', keys.past_requests[state.turn], ids)
  end
end

-- Makes room by the approvals of the current window among these. Returns how many there are.
local function release_requests(keys, state, ids)
  local released = call_in_chunks('SREM', keys.requests, ids)
  state.approved = state.approved - released
  state.made_room = state.made_room or released > 0
  return released
end

-- Keeps ids known that were released or withdrawn: a settle that asks about them late, or once again, does
-- not put them back.
local function remember_requests(keys, state, ids)
  call_in_chunks('SADD', keys.past_requests[state.turn], ids)
  state.has_past = true
  state.changed = true
end

-- Which of these ids were approved, in this window or in one that is remembered: id -> true.
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

-- Until when the ids approved in this window are remembered, beyond the life of its key: with them the
-- state, which knows the turn.
local function remembered_until(state, call)
  return share_turns(call) and state.start + state.window + (TURNS - 1) * call.lease or 0
end

-- Sees that the sets which ids were added to expire.
local function expire_requests(keys, state, call, expire_at)
  if state.approved > 0 then
    redis.call('PEXPIREAT', keys.requests, expire_at)
  end
  if state.has_past or (share_turns(call) and state.approved > 0) then
    redis.call('PEXPIREAT', keys.past_requests[state.turn], expire_at)
  end
end
