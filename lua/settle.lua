-- Ends windows, serves the queue, and tells a replica the state of the waiters it asks about. A waiter may be
-- missing from the queue without an approval in this window or an earlier one: Redis lost its memory, or assumed
-- that the replica was dead. Such a waiter is put back in its old place.
--
-- KEYS  1 state, 2 requests, 3 queue, 4 records, 5 replicas, 6 to 8 past requests
-- ARGV  1 to 6 as every call has them: 1 replica id, whose lease is renewed, 2 lease of a waiting replica in
--       ms, 3 limits, 4 how wakes are sent, 5 the most ids in a set, 6 the caller's history
--       7 a JSON text:
--         millisLeft  ms until the window ends, below 0 if it has ended, as far as the caller knows, for a key that Redis has lost
--         limits      the limits in force or '', likewise
--         waiters     those that it asks about: a list of requests as lib/requests has them, with `requestId` and `ticket`; a place
--                     that is not kept needs no `maxWaitMillis`
-- Reply a JSON text:
--         microsToRoom  microseconds until there may be room again: until the window ends, or sooner. 0: there is room now, and
--                       another call can serve more. Left out if there is no such key
--         microsToSettle  microseconds until the caller has to settle again, sooner than there may be room, because of a recovery;
--                       0 if it has not
--         wakeNumber    the number of the last wake, this call's if it publishes one; 0 if there was none
--         waiting       how many wait
--         places        how many places the caller has
--         limits        the limits in force
--         used          what counts of them: see `room.used`
--         groups        the same of the groups of the waiters that the call asks about or approves: see `room.used_of_groups`
--         at            the time of this call in ms since 1970
--         unclaimed     how many unclaimed approvals have lapsed since a reply told it
--         putBack       the claims (lib/requests) of the waiters that were put back
--         granted       the claims of the waiters that are approved by this call, and of the waiters asked about that were approved
--                       before
--         holdsLeft     by claims of the latter, for each that is held: ms until its hold lapses
--         ended         the claims asked about whose wait has ended otherwise, with `!` and the reason: `taken_over` or `withdrawn`

local approvals = require 'lib/approvals'
local calls = require 'lib/calls'
local holds = require 'lib/holds'
local in_force = require 'lib/in-force'
local instance = require 'lib/instance'
local key_names = require 'lib/key-names'
local limits_text = require 'lib/limits-text'
local lost_key = require 'lib/lost-key'
local queue = require 'queue/queue'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local room = require 'lib/room'
local serving = require 'lib/serving'
local stored = require 'lib/stored'

-- Whether a check takes an undecided request from an earlier one of its replica, for which the place was put back while the
-- later check took it over. `newest`: the number of the newest check asked about with the id.
local function takes_from_earlier(call, record, waiter, newest)
  if not record or record.owner == waiter.owner or waiter.number < newest
    or not requests.is_undecided(record)
  then
    return false
  end
  local replica, number = requests.split_owner(record.owner)
  return replica == call.replica and number < waiter.number
end

-- Whether a waiter has an older place than its request, which another check has brought back after Redis had lost its memory.
local function is_older(record, waiter)
  return record and record.state == requests.WAITING and waiter.ticket < record.ticket
    and waiter.hits == record.hits and waiter.holdMillis == record.holdMillis
end

-- Why the wait of a check has ended without an approval of its own, if its caller has chosen its id; nil if it has not.
-- `record`: of its request. `lapses`: from `approvals.find`. `newest`: the number of the newest check asked about with the id,
-- which has the place if Redis has lost the record.
local function reason_of_end(keys, waiter, record, lapses, newest)
  if record and record.owner ~= waiter.owner then
    return 'taken_over'
  elseif record then
    return record.state == requests.RELEASED and 'withdrawn' or nil
  elseif waiter.number < newest then
    return 'taken_over'
  end
  -- Its record is lost.
  local was_withdrawn = lapses == math.huge and redis.call('SMISMEMBER', keys.requests, waiter.requestId)[1] == 0
  return was_withdrawn and 'withdrawn' or nil
end

-- Whether Redis has lost the state that counted an approval of which nobody was told, or its hold: nothing is left of it then.
-- `state`: nil if there is none. `lapses`: from `approvals.find`.
local function is_lost(state, waiter, record, lapses)
  local may_be_unclaimed = waiter.keepMillis
  if record then
    may_be_unclaimed = record.state == requests.UNCLAIMED
  end
  if not may_be_unclaimed then
    return false
  end
  return not state or (lapses ~= math.huge and not stored.has_holds(state))
end

-- Gives requests their older places, if these are from before Redis lost the key: otherwise a release has withdrawn the earlier
-- request. `waiters`: with these, as asked about.
local function move_to_older_places(keys, state, call, waiters)
  for _, waiter in ipairs(waiters) do
    local record = requests.find(keys, state, waiter.requestId)
    if is_older(record, waiter) and recovery.is_older_than_key(keys, state, waiter.ticket) then
      queue.move(keys, state, call, record, waiter)
      state.made_room = true
    end
  end
end

-- Gives requests that belong to earlier checks to these. `holds_left`: as the reply has it.
local function take_from_earlier(keys, state, call, waiters, holds_left)
  for _, waiter in ipairs(waiters) do
    local record = requests.find(keys, state, waiter.requestId)
    if record and record.state == requests.WAITING then
      queue.take_over(keys, state, call, record, waiter)
    elseif record and record.state == requests.UNCLAIMED and waiter.keepMillis then
      record.owner = waiter.owner
      requests.write(keys, state, { record })
    elseif record and record.state == requests.UNCLAIMED then
      -- The reply tells its caller, without a confirmation.
      holds.claim(keys, state, call, record, waiter.owner)
      holds_left[requests.claim(waiter.requestId, waiter.owner)] = record.holdMillis
    end
  end
end

local function run(KEYS, ARGV)
  local call = calls.read(ARGV)
  local keys = key_names.read(KEYS, 1)
  local said = cjson.decode(ARGV[calls.FIRST_OWN])
  local waiters = said.waiters
  local granted, ended, holds_left = {}, {}, {}
  local reply = {
    microsToSettle = 0, wakeNumber = 0, waiting = 0, places = 0, limits = '', used = 0, at = call.now_ms, unclaimed = 0,
    granted = granted, putBack = {}, ended = ended, holdsLeft = holds_left,
  }

  local ids, newest = requests.ids_of(waiters), {}
  for i, waiter in ipairs(waiters) do
    requests.complete(call, waiter)
    if waiter.owner then
      newest[ids[i]] = math.max(newest[ids[i]] or 0, waiter.number)
    end
  end

  -- This comes before anything else, since remembered approvals outlive the key.
  local records = requests.find_all(keys, nil, ids)
  local approved = approvals.find(keys, ids, records, call.now_ms)
  local unheard, approved_before, unrecorded, later, older = {}, {}, {}, {}, {}
  for _, waiter in ipairs(waiters) do
    local id = waiter.requestId
    local lapses, record = approved[id], waiter.owner and records[id]
    local is_later = waiter.owner and takes_from_earlier(call, record, waiter, newest[id])
    local reason = waiter.owner and not is_later and reason_of_end(keys, waiter, record, lapses, newest[id])
    later[#later + 1] = is_later and waiter or nil
    if reason then
      ended[#ended + 1] = requests.claim(id, waiter.owner) .. '!' .. reason
      older[#older + 1] = is_older(record, waiter) and waiter or nil
    elseif lapses and not (record and record.state == requests.WAITING) then
      approved_before[#approved_before + 1] = waiter
    else
      unheard[#unheard + 1] = waiter
    end
  end

  local state, idle = instance.open(keys, call, stored.read(keys.state))
  local was_lost = not state and not idle
  for _, waiter in ipairs(approved_before) do
    local record = waiter.owner and records[waiter.requestId]
    local lapses = approved[waiter.requestId]
    if is_lost(state, waiter, record, lapses) then
      unheard[#unheard + 1] = waiter
    else
      local claim = requests.claim(waiter.requestId, waiter.owner)
      granted[#granted + 1] = claim
      holds_left[claim] = lapses ~= math.huge and lapses - call.now_ms or nil
      unrecorded[#unrecorded + 1] = waiter.owner and not record and waiter or nil
    end
  end
  if not state then
    if #unheard == 0 then
      return cjson.encode(reply)
    end
    state = was_lost and lost_key.restore(keys, call, said.limits, said.millisLeft) or instance.new(keys, call, idle)
  end

  local tally = queue.read(keys, state, call)
  local missing = queue.without_place(keys, state, call, unheard)
  if was_lost or (#missing > 0 and recovery.is_older_than_key(keys, state, missing[1].ticket)) then
    recovery.begin_after_loss(keys, state, call, not idle)
    lost_key.restore_overrides(state, said.limits)
  end
  -- Only leases can show that Redis was down. A call that removes the places of dead replicas has looked at them before.
  recovery.begin_if_redis_was_down(state, tally, call)
  in_force.take_for_waiters(keys, state, call)
  take_from_earlier(keys, state, call, later, holds_left)
  move_to_older_places(keys, state, call, older)
  for _, waiter in ipairs(unrecorded) do
    requests.remember(keys, state, call, waiter, requests.APPROVED)
  end
  if #missing > 0 then
    queue.rejoin(keys, state, call, missing)
    state.made_room = true
    state.expires = stored.idle_time(state)
  elseif #replicas.of_caller(tally, call) > 0 then
    queue.renew_lease(state, tally, call)
    queue.compact(keys, state, call.now_ms)
  end
  serving.serve(keys, state, call)
  reply.unclaimed = holds.take_lapsed_unclaimed(state)
  instance.close(keys, state, call)

  reply.microsToRoom = room.micros_to(keys, state, call)
  reply.microsToSettle = recovery.micros_to_settle(state, call, reply.microsToRoom)
  reply.wakeNumber, reply.waiting = state.wake, queue.count_waiting(keys, state, call)
  reply.limits, reply.used = limits_text.format(state), room.used(state, call)
  reply.groups = room.used_of_groups(state, call, requests.lists_of(waiters, state.granted_lists))
  reply.places = replicas.places_of_caller(tally, call)
  for i, waiter in ipairs(missing) do
    reply.putBack[i] = requests.claim(waiter.requestId, waiter.owner)
  end
  for _, claim in ipairs(state.granted or {}) do
    granted[#granted + 1] = claim
  end
  return cjson.encode(reply)
end
