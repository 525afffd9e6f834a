-- The waiters whose turns come next. Scripts ask here which waiters are served, which lists a head stops that lacks room, and
-- whether a newcomer would be next.

local entries = require 'queue/entries'
local key_limits = require 'limits/key-limits'
local lists = require 'queue/lists'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local turn_walk = require 'queue/turn-walk'

local heads = {}

-- A script reads at least this many entries if it may have to skip some at the head.
local LEAST_READ = 100
-- A walk stops at most this many groups that stop nobody else.
local MOST_STOPPED = 500

-- Whether any of these limits counts all lists. A group that is paused may be among them.
local function counts_all(limits)
  for _, limit in ipairs(limits) do
    if not (limit.lanes or limit.group or limit.counts_list and limit.paused_until) then
      return true
    end
  end
  return false
end

-- Whether a waiter fits into what is left of the limits and the holds, which it takes. If it does not, returns a function
-- that says which lists wait on behind it: those that a limit counts in which it lacks room; and whether that is its group alone. An approval that is held only for the caller of a kept place takes no hold, but its id has to be kept when it is
-- claimed.
function heads.stops_of(state, left, entry)
  local is_held = entry.holdMillis ~= nil
  if is_held and left.holds <= 0 then
    return turn_walk.all
  end
  local lacking, lacks_ids = key_limits.take_left(state, left.limits, entry.hits, is_held, entry.list and entry.list.id)
  if not lacking then
    left.holds = left.holds - (is_held and 1 or 0)
    return nil
  elseif lacks_ids or counts_all(lacking) then
    return turn_walk.all
  end
  local has_group = state.groups and entry.list and state.groups:of(entry.list.id)
  return function(list)
    for _, limit in ipairs(lacking) do
      if limit:counts_list(list) then
        return true
      end
    end
    return false
  end, has_group ~= nil
end

-- Begins a walk over the waiters in the order of their turns: of at most `most`, and `read_first` entries of one list, since
-- withdrawn ones may stand before those of waiters. It changes nothing until it is written.
function heads.walk(keys, state, call, tally, most, read_first)
  if state.lists then
    return turn_walk.begin(keys, state, most, call.now_ms)
  end
  return entries.walk(keys, entries.length(keys) == tally.living and most or read_first)
end

-- Goes on with a walk. `stops_of(entry)`: what a waiter that counts stops, or nil if it may be taken. Calls
-- `on(entry, counts, stops, of)` for each entry: whether its waiter counts, what it stops, and its list. Returns those that may
-- be taken, at most this number, those that may not, whether there are no more, and, as a list of their own, the heads that stop
-- their groups alone.
local function go_on(state, tally, walk, now_ms, most, stops_of, on)
  local taken, stopped, stopped_alone = {}, {}, nil
  while #taken < most do
    local entry, of = walk:next()
    if not entry then
      return taken, stopped, true, stopped_alone
    elseif stopped_alone and #stopped_alone == MOST_STOPPED then
      return taken, stopped, false, stopped_alone
    end
    local counts, stops, is_alone = heads.counts(state, tally, entry, now_ms), nil, false
    if counts then
      stops, is_alone = stops_of(entry)
    end
    if on then
      on(entry, counts, stops, of)
    end
    if stops and is_alone then
      stopped_alone = stopped_alone or {}
      stopped_alone[#stopped_alone + 1] = entry
      walk:stop(stops, entry)
    elseif stops then
      stopped[#stopped + 1] = entry
      walk:stop(stops)
    else
      walk:take(counts)
      taken[#taken + 1] = counts and entry or nil
    end
  end
  return taken, stopped, false, stopped_alone
end

-- The same as long as waiters fit into what is `left`, which they take.
function heads.pick(state, tally, walk, left, now_ms, most, on)
  return go_on(state, tally, walk, now_ms, most, function(entry)
    return heads.stops_of(state, left, entry)
  end, on)
end

-- Takes entries in the order of turns: waiters of living replicas, as long as they fit into the `room`, and the entries
-- before them that are skipped. `most`: how many waiters at most. Calls `approve(requests)` before it touches the queue.
-- Returns how many entries it took, and the heads that need more than is left if only such ones are left, else nil.
function heads.take(keys, state, call, room, most, approve)
  local tally, now_ms = state.tally, call.now_ms
  local walk = heads.walk(keys, state, call, tally, most, math.max(most, LEAST_READ))
  local forgotten, taken = {}, 0
  local approved, stopped, is_over = heads.pick(state, tally, walk, room, now_ms, most, function(entry, counts, stops)
    taken = taken + (stops and 0 or 1)
    if not stops and entry.is_waiting then
      replicas.add_places(tally, entry.replica_id, -1, now_ms)
      if not (counts and requests.is_recorded(state, entry)) then
        forgotten[#forgotten + 1] = entry.requestId
      end
    end
  end)
  approve(approved)
  local has_stopped = walk.has_touched and walk:has_touched() or lists.has_stopped(keys, state)
  if tally.places == 0 or (taken == 0 and #stopped == 0 and not has_stopped) then
    -- The list is at its end.
    requests.forget(keys, forgotten)
    queue.drop(keys, state, tally)
  elseif taken > 0 or has_stopped then
    requests.forget(keys, forgotten)
    walk:write(state)
  end
  local is_left = #stopped > 0 or (has_stopped and not walk.has_more and tally.places > 0)
  return taken, is_over and is_left and stopped or nil
end

-- Whether a kept place has outlived its longest wait, and its replica too, which would have ended it. `waiter`: an entry or a record.
function heads.has_waited_too_long(tally, waiter, now_ms)
  return waiter.maxWaitMillis ~= nil and now_ms - math.floor(tonumber(waiter.ticket) / 1000) >= waiter.maxWaitMillis
    and replicas.own_lease_ends(replicas.of(tally, waiter.replica_id)) <= now_ms
end

-- Whether an entry is of a waiter that counts: not of one of a dead replica, of which there is none in a recovery.
function heads.counts(state, tally, entry, now_ms)
  return entry.is_waiting and (
    recovery.is_on(state)
    or (replicas.is_alive(replicas.of(tally, entry.replica_id), now_ms) and not heads.has_waited_too_long(tally, entry, now_ms))
  )
end

-- Whether all who wait count: no replica with places is silent, or it may come back in a recovery.
function heads.all_count(state, tally, now_ms)
  if recovery.is_on(state) then
    return true
  end
  for _, replica in pairs(tally.replicas) do
    if replica.places > 0 and replicas.own_lease_ends(replica) <= now_ms then
      return false
    end
  end
  return true
end

-- The order key of a check that joined now. `list`: its lane or group. `virtual_time`: of the groups, if any wait.
local function key_of_newcomer(keys, state, call, virtual_time, list, hits)
  if list.kind == 'lane' then
    return lists.key_in_lane(math.max(call.now_us, queue.last_ticket(keys, state) + 1), list.parameter)
  end
  return virtual_time + hits / list.parameter
end

-- The place of a check that joined now, as queue/turn-walk has those of lists. `walk`: over the waiters. `list`: its lane or group,
-- or nil.
function heads.place_of_newcomer(keys, state, call, walk, list, hits)
  local id = list and list.id or lists.FIFO
  local kind = lists.kind_of(id)
  local key = list and key_of_newcomer(keys, state, call, walk.virtual_time, list, hits)
  return { rank = walk:rank_of(kind), kind = kind, id = id, key = key }
end

-- Whether the head of a list has its turn before a check that joined now. In a lane, the check passes no waiter of its own list,
-- though this may have a lesser head start by earlier rules.
function heads.is_before_newcomer(place, list)
  if list.id == place.id then
    return true
  elseif list.kind == place.kind then
    return list.key <= place.key
  end
  return list.rank < place.rank
end

-- Whether a check that joined now would have its turn before each waiter that is not stopped by a limit which does not
-- count the check. `left`: of the limits, which this takes. `place`: of the check.
function heads.is_next(state, call, tally, walk, left, place)
  walk:begin_with(place.kind, place.id)
  while true do
    local entry, of = walk:next()
    local is_own = entry and of.id == place.id
    if not entry or not heads.is_before_newcomer(place, of) then
      return true
    elseif not heads.counts(state, tally, entry, call.now_ms) then
      walk:take(false)
    else
      local stops = not is_own and heads.stops_of(state, left, entry)
      if not stops or stops(place.id) then
        return false
      end
      walk:stop(stops)
    end
  end
end

-- The waiters that would be next if they had room. None has.
function heads.find_stopped(state, call, tally, walk, left)
  local _, stopped, _, stopped_alone = go_on(state, tally, walk, call.now_ms, 1, function(entry)
    local stops, is_alone = heads.stops_of(state, left, entry)
    return stops or turn_walk.all, is_alone
  end)
  for _, entry in ipairs(stopped_alone or {}) do
    stopped[#stopped + 1] = entry
  end
  return stopped
end

-- The waiters whose turns come first, at most this number. `read_first`: the most entries that are read, since withdrawn ones may
-- stand before those of waiters.
function heads.first_waiters(keys, state, tally, now_ms, most, read_first)
  if tally.places == 0 or most == 0 then
    return {}
  end
  local walk = heads.walk(keys, state, { now_ms = math.huge }, tally, most, read_first)
  return (go_on(state, tally, walk, now_ms, most, function() end))
end

return heads
