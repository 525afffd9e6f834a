-- What requests of a key are now: whether they wait and where, or whether they are approved and until when they are held.
-- Writes nothing.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them, then per request its id
-- Reply a JSON text: a list with an object for each request, which is empty if the request is unknown or was released, or its
--       approval is over; else
--         status        `waiting` or `approved`
--         position      of one that waits: as queue/position has it
--         microsToTurn  of one that waits: the fewest microseconds until its turn
--         holdMillis    of an approval that is held: ms until its hold lapses
--
-- Only a request whose caller has chosen its id has a record while it waits: nobody knows the ids of the others yet. Its
-- place is as it is stored, and its turn as a settle would leave it: windows end, and who has room is served first.

local calendars = require 'lib/calendars'
local calls = require 'lib/calls'
local heads = require 'queue/heads'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local lists = require 'queue/lists'
local look = require 'lib/look'
local look_serving = require 'lib/look-serving'
local position = require 'queue/position'
local requests = require 'lib/requests'
local room = require 'lib/room'
local stored = require 'lib/stored'
local weight = require 'lib/weight'

local function describe_places(keys, state, call, tally, waiters)
  -- Before the look is served, which may begin a recovery: then no replica counts as dead.
  local before_all = position.before_all(keys, state, tally, call.now_ms, waiters)
  in_force.take_for_waiters(keys, state, call)
  local _, served = look_serving.serve(keys, state, call, tally)
  local replies = {}
  for i, before in ipairs(before_all) do
    local list = waiters[i].list and waiters[i].list.id
    local unserved = before - (served.by_list[list or lists.FIFO] or 0)
    local micros = unserved < 0 and 0 or room.micros_told(keys, state, call, unserved, waiters[i].hits, list)
    replies[i] = { status = 'waiting', position = before + 1, microsToTurn = micros }
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
  return state and key_limits.taken_by(keys, state, id) and { status = 'approved' } or {}
end

local function run(KEYS, ARGV)
  local call, keys = calls.read(ARGV), key_names.read(KEYS, 1)
  local ids = { unpack(ARGV, calls.FIRST_OWN) }
  weight.begin()
  call.only_looks = true
  calendars.require_current(call)
  local state, tally = look.at(keys, call.now_us, call)
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
