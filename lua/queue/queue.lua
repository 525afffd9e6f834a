-- The waiters of a limiter key. Scripts ask here: who joins, who is next, who has left. A queue has three names in
-- Redis:
--   queue     the order of the waiters: queue/fifo-list, or queue/lists if any has a lane or a group
--   waiting   a hash, request id -> ticket: an entry that is not in this hash with the same ticket is withdrawn, and is
--             skipped when it comes to the head
--   replicas  which replicas they wait on: queue/replicas
--
-- While a slot of a cluster moves, Redis fails a script at the first key that it does not find, even if the script
-- itself has emptied the key. So a script adds approved ids to the set before it touches the queue. A queue that
-- becomes empty is removed as a whole and not read again.

local chunks = require 'lib/chunks'
local entries = require 'queue/entries'
local fifo_list = require 'queue/fifo-list'
local holders = require 'lib/holders'
local lists = require 'queue/lists'
local key_limits = require 'limits/key-limits'
local more = require 'lib/more'
local named_requests = require 'lib/named-requests'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local stored = require 'lib/stored'
local weight = require 'lib/weight'

local queue = {}

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

-- Renews the lease of the caller.
function queue.renew_lease(state, tally, call)
  replicas.renew_lease(tally, call)
  state.set_at = call.now_ms
end

function queue.drop(keys, state, tally)
  redis.call('UNLINK', keys.queue, keys.waiting, keys.replicas)
  lists.drop(keys, state)
  named_requests.drop_waiting(keys, state)
  holders.drop_waiting(keys, state)
  replicas.forget(tally)
end

-- The tickets of all waiters, as a set.
local function waiting_tickets(keys)
  local tickets = {}
  for _, value in ipairs(weight.add(redis.call('HVALS', keys.waiting), 1)) do
    tickets[entries.ticket_of(value)] = true
  end
  return tickets
end

-- All entries. A list may have entries of waiters that have left it.
local function all_entries(keys, state)
  return state.lists and lists.all(keys) or fifo_list.all(keys)
end

function queue.count_entries(keys, state)
  return state.lists and lists.length(keys) or fifo_list.length(keys)
end

-- Counts the places of each replica from the list, and drops a queue that has lost entries.
local function recount(keys, state, tally, now_ms)
  local places = tally.places
  replicas.forget_places(tally)
  local tickets, owners = waiting_tickets(keys), named_requests.replicas(keys, state)
  for _, entry in ipairs(all_entries(keys, state)) do
    local ticket, request_id, replica_id = entries.split(entry)
    if tickets[ticket] then
      tickets[ticket] = nil
      replicas.add_places(tally, owners[request_id] or replica_id, 1, now_ms)
    end
  end
  if tally.places == 0 or tally.places ~= places then
    queue.drop(keys, state, tally)
  end
end

-- Whether as many entries can't have this number of waiters. Entries without waiters are what is left if both hashes were
-- removed.
local function is_torn(length, places)
  return length < places or (places == 0 and length > 0)
end

-- The tally of the queue, read at most once per script. If somebody else has removed some of its keys, it is repaired,
-- and replicas get time to put back the waiters that were lost with it.
function queue.read(keys, state, call)
  if not state.tally then
    local hashes_agree
    state.tally, hashes_agree = replicas.load(keys, call.now_ms)
    -- Tickets are times, a little later than now if many join at once. Only `renew` extends leases without a note in
    -- the state, which the caller's own lease shows. A lease of another that is longer than the caller's shows nothing:
    -- while replicas restart, they may have different settings.
    if state.clock_went_back or state.ticket > call.now_us + 1000000 or replicas.has_later_lease(state.tally, call) then
      replicas.cut_leases(state.tally, call)
    end
    local length = not state.lists and fifo_list.length(keys)
    if not length then
      length = lists.length(keys)
      if length == 0 and state.tally.places == 0 then
        -- All but the heads may have been removed.
        lists.drop(keys, state)
      else
        lists.repair(keys, state, waiting_tickets)
      end
    end
    if not hashes_agree or is_torn(length, state.tally.places) then
      recount(keys, state, state.tally, call.now_ms)
      recovery.begin_after_loss_of_queue(keys, state, call)
    end
  end
  return state.tally
end

-- How many wait.
function queue.count_waiting(keys, state, call)
  return recovery.count_waiting(state, queue.read(keys, state, call))
end

-- Waiters leave the queue without an approval, before they leave the hash. The one list drops their entries later.
local function leave_lists(keys, state, ids)
  if state.lists and #ids > 0 then
    local values = {}
    for _, value in ipairs(chunks.list('HMGET', keys.waiting, ids)) do
      values[#values + 1] = value or nil
    end
    lists.remove(keys, state, values)
  end
end

-- Forgets waiters that have left the queue without an approval. Returns how many of the ids waited.
local function forget(keys, state, ids)
  leave_lists(keys, state, ids)
  local count = chunks.call('HDEL', keys.waiting, ids)
  if count > 0 then
    named_requests.forget_waiting(keys, state, ids)
    holders.forget_waiting(keys, state, ids)
    state.changed = true
  end
  return count
end

-- Removes the waiters of dead replicas from a list, or, without one, from all lists. While all replicas live, nothing is read:
-- each of many checks that are denied asks for it.
local function remove_dead(keys, state, now_ms, list)
  local tally, waiters, dead = state.tally, {}, {}
  if tally.living == tally.places then
    return
  end
  for i, text in ipairs(list and lists.all_of(keys, list) or lists.all(keys)) do
    local _, request_id, replica_id = entries.split(text)
    waiters[i] = { request_id = request_id, replica_id = replica_id }
  end
  named_requests.resolve(keys, state, waiters)
  for _, waiter in ipairs(waiters) do
    if not replicas.is_alive(replicas.of(tally, waiter.replica_id), now_ms) then
      dead[#dead + 1] = waiter.request_id
      replicas.add_places(tally, waiter.replica_id, -1, now_ms)
    end
  end
  forget(keys, state, dead)
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
  if not fifo_list.has_many_withdrawn(keys, removes_dead and tally.living or tally.places) then
    return
  end
  local tickets, dead = waiting_tickets(keys), {}
  local owners = removes_dead and named_requests.replicas(keys, state)
  fifo_list.keep(keys, function(entry)
    local ticket = entries.ticket_of(entry)
    if not tickets[ticket] then
      return false
    end
    tickets[ticket] = nil
    if not removes_dead then
      return true
    end
    local _, request_id, replica_id = entries.split(entry)
    replica_id = owners[request_id] or replica_id
    if replicas.is_alive(replicas.of(tally, replica_id), now_ms) then
      return true
    end
    dead[#dead + 1] = request_id
    replicas.add_places(tally, replica_id, -1, now_ms)
    return false
  end)
  forget(keys, state, dead)
  -- The list that is written again has no expiry.
  state.changed = true
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

-- Whether any of the waiters has a lane or a group.
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
  local tickets, waiting = waiting_tickets(keys), {}
  for _, entry in ipairs(state.tally.places > 0 and fifo_list.all(keys) or {}) do
    local ticket = entries.ticket_of(entry)
    if tickets[ticket] then
      tickets[ticket] = nil
      waiting[#waiting + 1] = entry
    end
  end
  lists.begin(keys, state, waiting)
  state.unsorted = 0
end

-- Adds waiters of the caller to the end of the queue. `waiters`: of each its request id, ticket, hits and hold, its
-- holder if its check has named one, its list if it has a lane or a group, and if its caller has chosen the id, its owner, and
-- for how many ms its place is kept.
function queue.join(keys, state, call, waiters)
  local tally = queue.read(keys, state, call)
  local tickets, new, named = {}, {}, {}
  if not state.lists and have_lists(waiters) then
    begin_lists(keys, state)
  end
  for _, waiter in ipairs(waiters) do
    local ticket, id = entries.format_ticket(waiter.ticket), replicas.id_of(call.replica, waiter.keep)
    -- Has its lease renewed below.
    replicas.of(tally, id)
    tickets[id] = tickets[id] or {}
    table.insert(tickets[id], waiter.request_id)
    table.insert(tickets[id], lists.format_waiting(ticket, waiter.list))
    local entry = entries.format(ticket, waiter, id)
    new[#new + 1] = state.lists and (waiter.list and waiter.list.id or lists.FIFO) .. ' ' .. entry or entry
    if waiter.owner then
      named[#named + 1] = waiter
    end
  end
  named_requests.write(keys, state, call, named_requests.WAITING, named)
  holders.join_queue(keys, state, waiters)
  queue.renew_lease(state, tally, call)
  for id, of_id in pairs(tickets) do
    replicas.add_places(tally, id, chunks.call('HSET', keys.waiting, of_id), call.now_ms)
  end
  if state.lists then
    lists.add(keys, state, new)
  else
    fifo_list.append(keys, new)
  end
  queue.compact(keys, state, call.now_ms)
  more.changed(state)
end

-- The waiters among these that have no place in the queue, lowest ticket first. A waiter that belongs before the head
-- has none: somebody has removed the state, which recorded that the list is out of order.
function queue.without_place(keys, state, waiters)
  local ids, missing = {}, {}
  for i, waiter in ipairs(waiters) do
    ids[i] = waiter.request_id
  end
  local first = 0
  if #waiters > 0 and state.tally.places > 0 and state.unsorted ~= 1 and not state.lists then
    first = fifo_list.first_ticket(keys) or 0
  end
  for i, ticket in ipairs(chunks.list('HMGET', keys.waiting, ids)) do
    local belongs_before_head = ticket and tonumber(entries.ticket_of(ticket)) < first
    if belongs_before_head then
      state.unsorted = 1
    end
    if not ticket or belongs_before_head then
      missing[#missing + 1] = waiters[i]
    end
  end
  table.sort(missing, function(a, b)
    return a.ticket < b.ticket
  end)
  return missing
end

-- Puts waiters of the caller back in their old places. They join the end of the one list, which is sorted after the
-- recovery, and always before anybody is served. `waiters`: as for `queue.join`, lowest ticket first.
function queue.rejoin(keys, state, call, waiters)
  local last = not state.lists and fifo_list.last_ticket(keys)
  if last and last > waiters[1].ticket then
    state.unsorted = 1
  end
  state.has_rejoined = true
  queue.join(keys, state, call, waiters)
  state.ticket = math.max(queue.last_ticket(keys, state), waiters[#waiters].ticket)
end

-- Withdraws waiters. Returns how many of the ids waited. `replica_id`: the id under which their places count.
function queue.withdraw(keys, state, call, ids, replica_id)
  local tally = queue.read(keys, state, call)
  if tally.places == 0 then
    return 0
  end
  local withdrawn = forget(keys, state, ids)
  if withdrawn == 0 then
    return 0
  end
  replicas.add_places(tally, replica_id, -withdrawn, call.now_ms)
  if tally.living == 0 then
    key_limits.end_serving(state)
    state.stopped_heads = nil
  end
  if tally.places == 0 then
    redis.call('UNLINK', keys.queue, keys.replicas)
    lists.drop(keys, state)
    tally.replicas = {}
  end
  return withdrawn
end

-- A later check of a request that waits takes its place over. `record`: of the request.
function queue.take_over(keys, state, call, record, check)
  local tally = queue.read(keys, state, call)
  replicas.add_places(tally, record.replica_id, -1, call.now_ms)
  replicas.add_places(tally, replicas.id_of(call.replica, check.keep), 1, call.now_ms)
  queue.renew_lease(state, tally, call)
  named_requests.write(keys, state, call, named_requests.WAITING, { check })
end

-- A request gets an older place, which the caller has known. It still belongs to the check that has brought it back. `record`: of
-- the request. `waiter`: with the older place, as for `queue.join`.
function queue.move(keys, state, call, record, waiter)
  local tally = queue.read(keys, state, call)
  local lease_ends = replicas.of(tally, record.replica_id).lease_ends
  queue.withdraw(keys, state, call, { record.request_id }, record.replica_id)
  queue.rejoin(keys, state, call, { waiter })
  replicas.add_places(tally, replicas.id_of(call.replica, waiter.keep), -1, call.now_ms)
  replicas.of(tally, record.replica_id).lease_ends = lease_ends
  replicas.add_places(tally, record.replica_id, 1, call.now_ms)
  named_requests.write(keys, state, call, named_requests.WAITING, { record })
end

function queue.sort(keys, state, call)
  -- A list in which nobody waits would be stored without an expiry. Several lists are always in order.
  if queue.read(keys, state, call).places > 0 and not state.lists then
    fifo_list.sort(keys)
  end
  state.unsorted = 0
  state.changed = true
end

return queue
