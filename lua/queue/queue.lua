-- The waiters of a limiter key. Scripts ask here: who joins, who is next, who has left. A queue has three names in
-- Redis:
--   queue     the order of the waiters: queue/entries, or queue/lists if any has a lane or a group
--   records   what is known of each waiter (lib/requests): an entry without a record of its ticket is withdrawn, and is
--             skipped when it comes to the head
--   replicas  which replicas they wait on: queue/replicas

local chunks = require 'lib/chunks'
local entries = require 'queue/entries'
local key_limits = require 'limits/key-limits'
local lists = require 'queue/lists'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local requests = require 'lib/requests'
local stored = require 'lib/stored'

local queue = {}

-- A list of up to this many entries is never compacted.
local COMPACTION_SLACK = 100
-- Waiters of dead replicas stay while they are up to this many more than twice the places.
local DEAD_SLACK = 100

-- No ticket given out before was greater, unless Redis has lost the key. After the clock has gone back, no ticket is
-- older than the key.
function queue.last_ticket(keys, state)
  return state.ticket > 0 and state.ticket or stored.born_at(keys, state) * 1000
end

function queue.next_ticket(keys, state, call)
  state.ticket = math.max(call.now_us, queue.last_ticket(keys, state) + 1)
  return state.ticket
end

function queue.renew_lease(state, tally, call)
  replicas.renew_lease(tally, call)
  state.set_at, state.needs_expiry = call.now_ms, true
end

-- Nobody who is left in the queue counts. `has_lost`: there may be heads, and records of waiters, that have no places. All others are
-- forgotten as they leave, and a key may have many records of requests that do not wait.
function queue.drop(keys, state, tally, has_lost)
  if not stored.has_holds(state) and state.ends == 0 then
    redis.call('UNLINK', keys.queue, keys.replicas, keys.records)
  else
    if has_lost or tally.places > 0 then
      requests.forget_waiting(keys)
    end
    redis.call('UNLINK', keys.queue, keys.replicas)
  end
  lists.drop(keys, state, has_lost)
  replicas.forget(tally)
  -- Nothing is kept for the sake of waiters any more.
  state.needs_expiry = true
end

-- All who have an entry and its record.
local function read_all(keys, state)
  return entries.read_waiting(keys, state.lists and lists.all(keys) or entries.all(keys))
end

-- Counts the places of each replica from the list, and drops a queue that has lost entries.
local function recount(keys, state, tally, now_ms)
  local places = tally.places
  replicas.forget_places(tally)
  for _, waiter in ipairs(read_all(keys, state)) do
    replicas.add_places(tally, waiter.replica_id, 1, now_ms)
  end
  if tally.places == 0 or tally.places < places then
    queue.drop(keys, state, tally, true)
  end
end

-- Forgets the records of waiters and holds of which nothing else is left, and remembers those of the others for as long again.
-- Returns whether any waiter was forgotten.
local function repair_records(keys, state, call)
  local has_place, gone, have_waited = {}, {}, false
  for _, waiter in ipairs(read_all(keys, state)) do
    has_place[waiter.requestId] = true
  end
  for id, request in pairs(requests.read_all(keys)) do
    local has_lost_place = request.state == requests.WAITING and not has_place[id]
    local has_lost_state = requests.counts_as_held(request) and not stored.has_holds(state)
    gone[#gone + 1] = (has_lost_place or has_lost_state) and id or nil
    have_waited = have_waited or has_lost_place
    requests.restore_end(keys, state, call, request)
  end
  requests.forget(keys, gone)
  return have_waited
end

-- Whether the three names can't be of one queue: somebody else has removed one of them. Each waiter has a record, and so has each
-- held approval; all others have an end.
local function is_torn(keys, state, call, length, places)
  local others = redis.call('HLEN', keys.records) - places - state.held_ids
  return length < places or (places == 0 and length > 0) or others < 0
    or (others > 0 and others > requests.count_remembered(keys) and repair_records(keys, state, call))
end

local function repair(keys, state, call)
  recount(keys, state, state.tally, call.now_ms)
  state.needs_expiry = true
  recovery.begin_after_loss_of_queue(keys, state, call)
end

-- The tally of the queue, read at most once per script. If somebody else has removed some of its keys, it is repaired,
-- and replicas get time to put back the waiters that were lost with it.
function queue.read(keys, state, call)
  if not state.tally then
    state.tally = replicas.load(keys, call.now_ms)
    -- Tickets are times, a little later than now if many join at once. Only `renew` extends leases without a note in
    -- the state, which the caller's own lease shows. A lease of another that is longer than the caller's shows nothing:
    -- while replicas restart, they may have different settings.
    if state.clock_went_back or state.ticket > call.now_us + 1000000 or replicas.has_later_lease(state.tally, call) then
      replicas.cut_leases(state.tally, call)
    end
    local length = not state.lists and entries.length(keys)
    if not length then
      length = lists.length(keys)
      if length == 0 and state.tally.places == 0 then
        -- All but the heads may have been removed.
        lists.drop(keys, state)
      else
        lists.repair(keys, state)
      end
    end
    if is_torn(keys, state, call, length, state.tally.places) then
      repair(keys, state, call)
    end
  end
  return state.tally
end

function queue.count_waiting(keys, state, call)
  return recovery.count_waiting(state, queue.read(keys, state, call))
end

-- Forgets waiters that have left the queue without an approval. The one list drops their entries later.
local function forget(keys, state, waiters)
  if #waiters == 0 then
    return
  elseif state.lists then
    lists.remove(keys, state, waiters)
  end
  requests.forget(keys, requests.ids_of(waiters))
end

-- The waiters of dead replicas among these. They count no longer.
local function take_dead(state, waiters, now_ms)
  local tally, dead = state.tally, {}
  for _, waiter in ipairs(waiters) do
    if waiter.is_waiting and not replicas.is_alive(replicas.of(tally, waiter.replica_id), now_ms) then
      waiter.is_waiting, dead[#dead + 1] = false, waiter
      replicas.add_places(tally, waiter.replica_id, -1, now_ms)
    end
  end
  return dead
end

-- Removes the waiters of dead replicas from a list, or, without one, from all lists. While all replicas live, nothing is read:
-- each of many checks that are denied asks for it.
local function remove_dead(keys, state, now_ms, list)
  if state.tally.living < state.tally.places then
    local waiters = entries.read(keys, list and lists.first_of(keys, list, -1) or lists.all(keys))
    forget(keys, state, take_dead(state, waiters, now_ms))
  end
end

-- Removes withdrawn entries if they are more than half of the list. It also removes the waiters of dead replicas if
-- they are more than one outage of Redis explains: replicas that seem dead after an outage, and newcomers after it,
-- fill the queue at most twice.
--
-- Joins and settles call it. Withdrawals do not: each of many at the same time would compact the list.
function queue.compact(keys, state, now_ms)
  local tally = state.tally
  local removes_dead = tally.places > 2 * state.queue_max + DEAD_SLACK
  if state.lists then
    if removes_dead then
      remove_dead(keys, state, now_ms)
    end
    return
  end
  if entries.length(keys) <= 2 * (removes_dead and tally.living or tally.places) + COMPACTION_SLACK then
    return
  end
  local waiters = entries.read(keys, entries.all(keys))
  if removes_dead then
    forget(keys, state, take_dead(state, waiters, now_ms))
  end
  entries.keep(keys, waiters)
  -- The list that is written again has no expiry.
  state.needs_expiry = true
end

-- How many wait in a list. `most`: if the list has that many, the waiters of dead replicas are removed from it first.
function queue.count_in_list(keys, state, call, list, most)
  if not state.lists or queue.read(keys, state, call).places == 0 then
    return 0
  end
  local count = lists.count(keys, list)
  if most and count >= most and not recovery.is_on(state) then
    remove_dead(keys, state, call.now_ms, list)
    count = lists.count(keys, list)
  end
  return count
end

local function have_lists(waiters)
  for _, waiter in ipairs(waiters) do
    if waiter.list then
      return true
    end
  end
  return false
end

-- The waiters of a queue with one list become those of the first one of several.
local function begin_lists(keys, state)
  local waiting = state.tally.places > 0 and entries.read_waiting(keys, entries.all(keys)) or {}
  for _, waiter in ipairs(waiting) do
    waiter.text = lists.FIFO .. ' ' .. waiter.text
  end
  lists.begin(keys, state, waiting)
  state.unsorted = 0
end

-- Adds waiters of the caller to the end of the queue. `waiters`: their requests, with tickets. One with `has_place` has a place
-- that it leaves.
function queue.join(keys, state, call, waiters)
  local tally, new = queue.read(keys, state, call), {}
  if not state.lists and have_lists(waiters) then
    begin_lists(keys, state)
  end
  for i, waiter in ipairs(waiters) do
    waiter.state, waiter.replica_id = requests.WAITING, replicas.id_of(call.replica, waiter.keepMillis)
    replicas.add_places(tally, waiter.replica_id, waiter.has_place and 0 or 1, call.now_ms)
    waiter.text = state.lists and lists.format_entry(waiter, waiter.replica_id) or entries.format(waiter, waiter.replica_id)
    new[i] = waiter.text
  end
  requests.write(keys, state, waiters)
  queue.renew_lease(state, tally, call)
  if state.lists then
    lists.add(keys, state, waiters)
  else
    chunks.call('RPUSH', keys.queue, new)
  end
  queue.compact(keys, state, call.now_ms)
end

-- The waiters among these that have no record of a place, lowest ticket first, and how many have one. A waiter that belongs
-- before the head is among the first: somebody has removed the state, which recorded that the list is out of order.
local function without_record(keys, state, waiters)
  local missing, with_record, first = {}, 0, ''
  if #waiters > 0 and state.tally.places > 0 and state.unsorted ~= 1 and not state.lists then
    first = entries.ticket_at(keys, 0) or ''
  end
  -- Without the other names of the queue, a record is no place.
  local found = state.tally.places > 0 and requests.find_all(keys, state, requests.ids_of(waiters)) or {}
  for _, waiter in ipairs(waiters) do
    local place = found[waiter.requestId]
    waiter.has_place = place ~= nil and place.state == requests.WAITING
    with_record = with_record + (waiter.has_place and 1 or 0)
    local belongs_before_head = waiter.has_place and place.ticket < first
    if belongs_before_head then
      state.unsorted = 1
    end
    if not waiter.has_place or belongs_before_head then
      missing[#missing + 1] = waiter
    end
  end
  table.sort(missing, function(a, b)
    return a.ticket < b.ticket
  end)
  return missing, with_record
end

-- The waiters of the caller among these that have no place in the queue, lowest ticket first.
function queue.without_place(keys, state, call, waiters)
  local missing, with_record = without_record(keys, state, waiters)
  if with_record > replicas.places_of_caller(state.tally, call) then
    -- Only their records are left. While more approvals have an end than a record, as after a loss of records, the numbers of the
    -- names do not show that.
    repair_records(keys, state, call)
    repair(keys, state, call)
    missing = without_record(keys, state, waiters)
  end
  return missing
end

-- Puts waiters of the caller back in their old places. They join the end of the one list, which is sorted after the
-- recovery, and always before anybody is served. `waiters`: as for `queue.join`, lowest ticket first.
function queue.rejoin(keys, state, call, waiters)
  local last = not state.lists and entries.ticket_at(keys, -1)
  if last and last > waiters[1].ticket then
    state.unsorted = 1
  end
  state.has_rejoined = true
  queue.join(keys, state, call, waiters)
  state.ticket = math.max(queue.last_ticket(keys, state), tonumber(waiters[#waiters].ticket))
end

-- Withdraws waiters. `waiters`: their requests, as they are. One without an owner waits on the caller.
function queue.withdraw(keys, state, call, waiters)
  local tally = queue.read(keys, state, call)
  if tally.places == 0 or #waiters == 0 then
    return
  end
  forget(keys, state, waiters)
  for _, waiter in ipairs(waiters) do
    replicas.add_places(tally, waiter.replica_id or call.replica, -1, call.now_ms)
  end
  if tally.living == 0 then
    key_limits.serve(state, false)
    state.stopped_heads = nil
  end
  if tally.places == 0 then
    redis.call('UNLINK', keys.queue, keys.replicas)
    lists.drop(keys, state)
    tally.replicas = {}
  end
end

-- A later check of a request that waits takes its place over. `waiter`: the request as it is.
function queue.take_over(keys, state, call, waiter, check)
  local tally = queue.read(keys, state, call)
  replicas.add_places(tally, waiter.replica_id, -1, call.now_ms)
  replicas.add_places(tally, replicas.id_of(call.replica, check.keepMillis), 1, call.now_ms)
  queue.renew_lease(state, tally, call)
  waiter.owner, waiter.keepMillis, waiter.maxWaitMillis = check.owner, check.keepMillis, check.maxWaitMillis
  requests.write(keys, state, { waiter })
end

-- A request gets an older place, which the caller has known. It still belongs to the check that has brought it back. `waiter`:
-- the request as it is. `older`: with the older place, as for `queue.join`.
function queue.move(keys, state, call, waiter, older)
  local tally = queue.read(keys, state, call)
  local lease_ends = replicas.of(tally, waiter.replica_id).lease_ends
  queue.withdraw(keys, state, call, { waiter })
  queue.rejoin(keys, state, call, { older })
  replicas.add_places(tally, older.replica_id, -1, call.now_ms)
  replicas.of(tally, waiter.replica_id).lease_ends = lease_ends
  replicas.add_places(tally, waiter.replica_id, 1, call.now_ms)
  waiter.ticket, waiter.list = older.ticket, older.list
  requests.write(keys, state, { waiter })
end

function queue.sort(keys, state, call)
  -- A list in which nobody waits would be stored without an expiry. Several lists are always in order.
  if queue.read(keys, state, call).places > 0 and not state.lists then
    entries.sort(keys)
  end
  state.unsorted, state.needs_expiry = 0, true
end

return queue
