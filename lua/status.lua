-- What requests of a key are now: whether they wait and where, or whether they are approved and until when they are held.
-- Writes nothing.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them, then per request its id
-- Reply a JSON text: a list with an object for each request, which is empty if the request is unknown or was released, or its
--       approval is over; else
--         status        `waiting` or `approved`
--         position      of one that waits: where it stands in its list of the queue, 1 at the head
--         microsToTurn  of one that waits: the fewest microseconds until its turn
--         stoppedBy     of one that waits in a group that is stopped: see `group_limits.reason_of_stop`
--         holdMillis    of an approval that is held: ms until its hold lapses
--
-- Only a request whose caller has chosen its id has a record while it waits: nobody knows the ids of the others yet. Its
-- place is as it is stored, and its turn as a settle would leave it: windows end, and who has room is served first.
--
-- The only list of a key has entries that do not count: of withdrawn waiters, and of waiters of dead replicas. The first WALKED
-- entries are read to leave these out. So the position is exact while at most WALKED entries are before it. Entries behind these
-- all count. A binary search by ticket finds the waiter's entry, however long the list is. queue/dead-waiters has the entries of
-- several lists that do not count.

local calls = require 'lib/calls'
local dead_waiters = require 'queue/dead-waiters'
local entries = require 'queue/entries'
local heads = require 'queue/heads'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local lists = require 'queue/lists'
local reads = require 'lib/reads'
local requests = require 'lib/requests'
local room = require 'lib/room'
local snapshot = require 'lib/snapshot'
local stored = require 'lib/stored'

local WALKED = 1000

-- How many values of an ordered list are lower. `is_lower(i)`: whether the one at this index is, from 0 on.
local function count_lower(length, is_lower)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_lower(middle) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- The tickets of waiters that count among the first entries, as texts and in their order. `most`: how many entries.
local function read_counting(keys, state, tally, now_ms, most)
  local tickets = {}
  for _, entry in ipairs(entries.read(keys, entries.first(keys, most))) do
    if heads.counts(state, tally, entry, now_ms) then
      tickets[#tickets + 1] = entry.ticket
    end
  end
  if state.unsorted == 1 then
    table.sort(tickets)
  end
  return tickets
end

local function before_in_lists(keys, state, tally, now_ms, waiters)
  local before, dead = {}, dead_waiters.begin(keys, state, tally, now_ms)
  for i, waiter in ipairs(waiters) do
    local list = waiter.list and waiter.list.id or lists.FIFO
    before[i] = lists.count(keys, list, entries.start_of(waiter))
    before[i] = before[i] - dead:count(list, before[i])
  end
  return before
end

-- How many stand before each of these waiters, by their requests. The entries are read once, as far as the last of the waiters.
-- While a list is out of order, that is exact if the list has WALKED entries at most.
local function before_all(keys, state, tally, now_ms, waiters)
  if state.lists then
    return before_in_lists(keys, state, tally, now_ms, waiters)
  end
  local length, is_sorted = entries.length(keys), state.unsorted ~= 1
  local lower, most = {}, 0
  for i, waiter in ipairs(waiters) do
    lower[i] = count_lower(length, function(index)
      return entries.ticket_at(keys, index) < waiter.ticket
    end)
    most = math.max(most, is_sorted and lower[i] or length)
  end
  if most == 0 or (is_sorted and length == tally.places and heads.all_count(state, tally, now_ms)) then
    return lower
  end
  local counting, before = read_counting(keys, state, tally, now_ms, math.min(most, WALKED)), {}
  for i, waiter in ipairs(waiters) do
    local walked = count_lower(#counting, function(index)
      return counting[index + 1] < waiter.ticket
    end)
    before[i] = walked + math.max(0, lower[i] - WALKED)
  end
  return before
end

local function describe_places(keys, state, call, tally, waiters)
  -- Before the look is served, which may begin a recovery: then no replica counts as dead.
  local all_before = before_all(keys, state, tally, call.now_ms, waiters)
  in_force.take_for_waiters(keys, state, call)
  local _, served = snapshot.serve(keys, state, call, tally)
  local is_open = state.groups and state.lists and key_limits.fit(state, 1) and not room.is_closed(state)
  local replies = {}
  for i, before in ipairs(all_before) do
    local list = waiters[i].list and waiters[i].list.id
    local unserved = before - (served.by_list[list or lists.FIFO] or 0)
    local micros = unserved < 0 and 0 or room.micros_told(keys, state, call, unserved, waiters[i].hits, list)
    local hits = list and is_open and served.walk:hits_of_stopped(list)
    replies[i] = {
      status = 'waiting', position = before + 1, microsToTurn = micros,
      stoppedBy = hits and state.groups:reason_of_stop(list, hits) or nil,
    }
  end
  return replies
end

-- Describes the approval that a check with the id would get, or, without a record, one that counts. `lapses`: when its hold
-- lapses; nil if it is not held.
local function describe_approval(keys, state, call, id, request, lapses)
  if lapses and lapses > call.now_ms then
    return { status = 'approved', holdMillis = lapses - call.now_ms }
  elseif request and (request.owner or request.state == requests.UNCLAIMED) then
    return request.state == requests.APPROVED and { status = 'approved' } or {}
  end
  return state and key_limits.taken_by(keys, state, id, request and lists.id_of(request.list)) and { status = 'approved' } or {}
end

local function run(KEYS, ARGV)
  local call, keys = calls.read(ARGV), key_names.read(KEYS, 1)
  local ids = { unpack(ARGV, calls.FIRST_OWN) }
  reads.begin()
  in_force.require_current_calendars(call)
  local state, tally = snapshot.at(keys, call.now_us, call)
  -- An idle key still remembers requests.
  local known = state or stored.read(keys.state)
  -- Also those whose holds have lapsed by now, which the state that is looked at leaves out.
  local found = known and requests.find_all(keys, nil, ids) or {}
  local lapses = known and stored.has_holds(known) and holds.lapses_of(keys, found, call.now_ms) or {}
  local replies, waiting, places = {}, {}, {}
  for i, id in ipairs(ids) do
    local request = found[id]
    if request and request.state == requests.WAITING then
      replies[i] = {}
      if state and request.owner and not heads.has_waited_too_long(tally, request, call.now_ms) then
        waiting[#waiting + 1], places[#places + 1] = request, i
      end
    else
      replies[i] = describe_approval(keys, state, call, id, request, lapses[id])
    end
  end
  if #waiting > 0 then
    -- After approvals: this counts in the state those who would be served now.
    for i, reply in ipairs(describe_places(keys, state, call, tally, waiting)) do
      replies[places[i]] = reply
    end
  end
  return cjson.encode(replies)
end
