-- Whether a check that does not wait would be approved now, and if not, when its turn would come. Writes nothing.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them, 7 a JSON text: the request as lib/requests has it, with `ceilings` and `maxHolds` as for a
--       batch of lib/checks
-- Reply a JSON text:
--         microsToRoom  microseconds until there may be room
--         limits        the limits in force, as lib/limits-text has them
--         used          what counts of them: see `room.used`
--         verdict       one of check.lua: 1 approved, 0 denied, -3 failed because the set of ids or of holds is full, -4 denied
--                       because its hits are more than the maximum, -5 denied because the key is paused
--         microsToTurn  the fewest microseconds until its turn if it joined the queue now; 0 if it would be approved
--         groups        what counts of the limits that its group has to itself: see `room.used_of_groups`
--
-- A check ends windows and holds, takes the rules of its caller, and serves the queue before it is decided. This script
-- does the same to the state that it has read, by the same functions where these write nothing. `keys.is_read_only` keeps
-- the others from it. After the clock has gone back, a hold lapses when it would have: a check makes it shorter.

local approvals = require 'lib/approvals'
local calls = require 'lib/calls'
local dead_waiters = require 'queue/dead-waiters'
local entries = require 'queue/entries'
local group_limits = require 'limits/group-limits'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local key_names = require 'lib/key-names'
local limits_text = require 'lib/limits-text'
local lists = require 'queue/lists'
local pause = require 'lib/pause'
local reads = require 'lib/reads'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local room = require 'lib/room'
local snapshot = require 'lib/snapshot'
local stored = require 'lib/stored'
local verdicts = require 'lib/verdicts'

-- A key that a check would begin, and the tally of its queue, which may be left from one that Redis has lost.
local function begin(keys, call)
  local state = stored.new(call, nil, call.rules)
  -- The stored groups are those of the key before, which a check would remove.
  state.groups_number = -1
  group_limits.begin(keys, state, call)
  for _, limit in ipairs(state.limits) do
    limit.has_no_ids = true
  end
  local tally = replicas.load(keys, call.now_ms)
  if tally.places > 0 and not entries.length(keys) then
    lists.find_leftovers(keys, state)
  end
  return state, tally
end

-- The verdict on a check. `is_next`: whether nobody who waits is before it. `list`: the id of its lane or group, or nil.
local function decide(keys, state, call, is_next, request, list)
  local hits = request.hits
  local fits, is_kept = key_limits.fit(state, hits, list), approvals.is_kept(keys, state, call, request)
  if fits and is_kept and is_next and not room.is_closed(state) then
    return verdicts.APPROVED
  elseif hits > 1 and key_limits.is_any_below(state, hits, list) then
    return verdicts.TOO_MANY_HITS
  elseif fits and not is_kept then
    return verdicts.KEY_FULL
  end
  return (pause.is_on(state) or key_limits.is_group_paused(state, list)) and verdicts.PAUSED or verdicts.DENIED
end

local function run(KEYS, ARGV)
  local call, keys = calls.read(ARGV), key_names.read(KEYS, 1)
  local request = requests.complete(call, cjson.decode(ARGV[calls.FIRST_OWN]))
  local hits, list = request.hits, request.list
  reads.begin()
  in_force.require_current_calendars(call)
  local state, tally = snapshot.at(keys, call.now_us, call)
  if not state then
    state, tally = begin(keys, call)
  end
  if request.ceilings or state.limits_text ~= call.rules.text then
    in_force.configure(keys, state, call, request, state.is_new)
    group_limits.begin(keys, state, call)
  end
  call.max_groups = request.maxGroups
  state.max_holds = request.holdMillis and request.maxHolds or state.max_holds
  local waiting, served = snapshot.serve(keys, state, call, tally)
  local is_next = waiting == 0 or snapshot.is_next(keys, state, call, tally, served, list, hits)
  local verdict = decide(keys, state, call, is_next, request, list and list.id)
  local of_list = served.by_list[list and list.id or lists.FIFO] or 0
  local before = dead_waiters.count_before(keys, state, tally, call.now_ms, list, waiting + of_list) - of_list
  local groups = room.used_of_groups(state, call, { list })
  local turn = verdict == verdicts.APPROVED and 0 or room.micros_told(keys, state, call, before, hits, list and list.id)
  return cjson.encode({
    microsToRoom = room.micros_to(keys, state, call), limits = limits_text.format(state), used = room.used(state, call),
    verdict = verdict, microsToTurn = turn, groups = groups,
  })
end
