-- The waiters of a limiter key. Scripts ask here: who joins, who is next, who has left. A queue has three names in
-- Redis:
--   queue     the order of the waiters: queue/fifo-list
--   waiting   a hash, request id -> ticket: an entry of the list that is not in this hash with the same ticket is
--             withdrawn, and is skipped when it comes to the head
--   replicas  which replicas they wait on: queue/replicas
--
-- While a slot of a cluster moves, Redis fails a script at the first key that it does not find, even if the script
-- itself has emptied the key. So a script adds approved ids to the set before it touches the queue. A queue that
-- becomes empty is removed as a whole and not read again.

local chunks = require 'lib/chunks'
local entries = require 'queue/entries'
local fifo_list = require 'queue/fifo-list'
local holders = require 'lib/holders'
local key_limits = require 'limits/key-limits'
local more = require 'lib/more'
local named_requests = require 'lib/named-requests'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local stored = require 'lib/stored'
local weight = require 'lib/weight'

local queue = {}

-- A script reads at least this many entries if it may have to skip some at the head.
local LOOK_AHEAD = 100
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
  named_requests.drop_waiting(keys, state)
  holders.drop_waiting(keys, state)
  replicas.forget(tally)
end

-- The tickets of all waiters, as a set.
local function waiting_tickets(keys)
  local tickets = {}
  for _, ticket in ipairs(weight.add(redis.call('HVALS', keys.waiting), 1)) do
    tickets[ticket] = true
  end
  return tickets
end

-- Counts the places of each replica from the list, and drops a queue that has lost entries.
local function recount(keys, state, tally, now_ms)
  local places = tally.places
  replicas.forget_places(tally)
  local tickets, owners = waiting_tickets(keys), named_requests.replicas(keys, state)
  for _, entry in ipairs(fifo_list.all(keys)) do
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

-- Whether the list can't have this number of waiters. A list without waiters is what is left if both hashes were
-- removed.
local function is_list_torn(keys, places)
  local length = fifo_list.length(keys)
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
    if not hashes_agree or is_list_torn(keys, state.tally.places) then
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

-- Removes withdrawn entries if they are more than half of the list. It also removes the waiters of dead replicas if
-- they are more than one outage of Redis explains: replicas that seem dead after an outage, and newcomers after it,
-- fill the queue at most twice.
--
-- Joins and settles call it. Withdrawals do not: each of many at the same time would compact the list.
function queue.compact(keys, state, now_ms)
  local tally = state.tally
  local removes_dead = tally.places > 2 * state.queue_max + DEAD_SLACK
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
  chunks.call('HDEL', keys.waiting, dead)
  named_requests.forget_waiting(keys, state, dead)
  holders.forget_waiting(keys, state, dead)
  state.changed = true
end

-- Adds waiters of the caller to the end of the queue. `waiters`: of each its request id, ticket, hits and hold, its
-- holder if its check has named one, and if its caller has chosen the id, its owner, and for how many ms its place is kept.
function queue.join(keys, state, call, waiters)
  local tally = queue.read(keys, state, call)
  local tickets, new, named = {}, {}, {}
  for _, waiter in ipairs(waiters) do
    local ticket, id = entries.format_ticket(waiter.ticket), replicas.id_of(call.replica, waiter.keep)
    -- Has its lease renewed below.
    replicas.of(tally, id)
    tickets[id] = tickets[id] or {}
    table.insert(tickets[id], waiter.request_id)
    table.insert(tickets[id], ticket)
    new[#new + 1] = entries.format(ticket, waiter, id)
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
  fifo_list.append(keys, new)
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
  if #waiters > 0 and state.tally.places > 0 and state.unsorted ~= 1 then
    first = fifo_list.first_ticket(keys) or 0
  end
  for i, ticket in ipairs(chunks.list('HMGET', keys.waiting, ids)) do
    local belongs_before_head = ticket and tonumber(ticket) < first
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

-- Puts waiters of the caller back in their old places. They join the end of the list, which is sorted after the
-- recovery, and always before anybody is served. `waiters`: as for `queue.join`, lowest ticket first.
function queue.rejoin(keys, state, call, waiters)
  local last = fifo_list.last_ticket(keys)
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
  local withdrawn = chunks.call('HDEL', keys.waiting, ids)
  if withdrawn == 0 then
    return 0
  end
  replicas.add_places(tally, replica_id, -withdrawn, call.now_ms)
  named_requests.forget_waiting(keys, state, ids)
  holders.forget_waiting(keys, state, ids)
  state.changed = true
  if tally.living == 0 then
    key_limits.end_serving(state)
    state.head_hits = nil
  end
  if tally.places == 0 then
    redis.call('UNLINK', keys.queue, keys.replicas)
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

function queue.sort(keys, state, call)
  -- A list in which nobody waits would be stored without an expiry.
  if queue.read(keys, state, call).places > 0 then
    fifo_list.sort(keys)
  end
  state.unsorted = 0
  state.changed = true
end

-- Reads entries: a list of { ticket, request_id, replica_id, hits, hold, keep, owner, is_waiting }.
-- `has_withdrawn`: the list may have withdrawn entries, or one entry twice.
function queue.read_entries(keys, state, texts, has_withdrawn)
  local read, ids, tickets = {}, {}, {}
  for i, text in ipairs(texts) do
    local ticket, request_id, replica_id, hits, hold = entries.split(text)
    read[i] = {
      ticket = ticket, request_id = request_id, replica_id = replica_id, hits = hits, hold = hold, is_waiting = true,
    }
    ids[i], tickets[i] = request_id, ticket
  end
  if has_withdrawn then
    local seen = {}
    for i, ticket in ipairs(chunks.list('HMGET', keys.waiting, ids)) do
      read[i].is_waiting = ticket == tickets[i] and not seen[ticket]
      seen[tickets[i]] = true
    end
  end
  named_requests.resolve(keys, state, read)
  return read
end

-- Whether a waiter fits into what is left of the limits and the holds, which it takes. An approval that is held only for the
-- caller of a kept place takes no hold, but its id has to be kept when it is claimed.
function queue.takes_its_room(state, left, entry)
  local is_held = entry.hold ~= nil
  if (is_held and left.holds <= 0) or not key_limits.take_left(state, left.limits, entry.hits, is_held) then
    return false
  end
  left.holds = left.holds - (is_held and 1 or 0)
  return true
end

-- What the approval of a waiter takes. The approval of a kept place is held for its caller first.
local function terms_of(entry)
  if not entry.keep then
    return entry
  end
  return { request_id = entry.request_id, hits = entry.hits, hold = entry.keep }
end

-- Takes entries from the head: waiters of living replicas, as long as they fit into the `room`, and the entries
-- before them that are skipped. `most`: how many waiters at most. Calls `approve(ids, terms, claims)` before it touches
-- the queue: the claims are what wakes call them. Returns how many entries it took, whether the head needs more than is
-- left, and how many hits it needs then.
function queue.take_heads(keys, state, call, room, most, approve)
  local tally, now_ms = state.tally, call.now_ms
  local length = fifo_list.length(keys)
  local texts = fifo_list.first(keys, length == tally.living and most or math.max(most, LOOK_AHEAD))
  local ids, terms, claims, gone, left = {}, {}, {}, {}, {}
  local taken, has_terms, is_blocked, head_hits, unclaimed = 0, false, false, nil, 0
  for _, entry in ipairs(queue.read_entries(keys, state, texts, length ~= tally.places)) do
    if #ids == most then
      break
    end
    local counts = entry.is_waiting and replicas.is_alive(replicas.of(tally, entry.replica_id), now_ms)
    if counts and not queue.takes_its_room(state, room, entry) then
      is_blocked, head_hits = true, entry.hits
      break
    end
    taken = taken + 1
    if entry.is_waiting then
      gone[#gone + 1], left[#left + 1] = entry.request_id, entry
      entry.is_approved = counts
      replicas.add_places(tally, entry.replica_id, -1, now_ms)
    end
    if counts then
      ids[#ids + 1], claims[#claims + 1] = entry.request_id, named_requests.claim(entry.request_id, entry.owner)
      terms[#terms + 1] = terms_of(entry)
      has_terms = has_terms or entry.hits ~= 1 or terms[#terms].hold ~= nil
      unclaimed = unclaimed + (entry.keep and not entry.hold and 1 or 0)
    end
  end
  if has_terms then
    holders.resolve(keys, state, terms)
  end
  approve(ids, has_terms and terms or nil, claims)
  -- lib/unclaimed-approvals
  state.unclaimed = state.unclaimed + unclaimed
  named_requests.leave_queue(keys, state, call, left)
  if tally.places == 0 or (taken == 0 and not is_blocked) then
    -- The list is at its end.
    queue.drop(keys, state, tally)
  elseif taken > 0 then
    chunks.call('HDEL', keys.waiting, gone)
    holders.forget_waiting(keys, state, gone)
    fifo_list.remove_first(keys, taken)
  end
  return taken, is_blocked, head_hits
end

-- Whether an entry is of a waiter that counts: not of one of a dead replica, of which there is none in a recovery.
function queue.counts(state, tally, entry, now_ms)
  return entry.is_waiting
    and (recovery.is_on(state) or replicas.is_alive(replicas.of(tally, entry.replica_id), now_ms))
end

-- The waiters whose turns come first, at most this number: of each its replica, its arrival in ms since 1970, its hits, its
-- hold, and for how many ms its place is kept.
-- `looked_at`: the most entries that are read, since withdrawn ones may stand before those of waiters.
function queue.first_waiters(keys, state, tally, now_ms, most, looked_at)
  local first = {}
  if tally.places == 0 then
    return first
  end
  local length = fifo_list.length(keys)
  local texts = fifo_list.first(keys, length == tally.living and most or looked_at)
  for _, entry in ipairs(queue.read_entries(keys, state, texts, length ~= tally.places)) do
    if #first == most then
      break
    end
    if queue.counts(state, tally, entry, now_ms) then
      first[#first + 1] = {
        replica_id = replicas.split_id(entry.replica_id), arrival = math.floor(tonumber(entry.ticket) / 1000),
        hits = entry.hits, hold = entry.hold, keep = entry.keep,
      }
    end
  end
  return first
end

-- Every ticket below the one returned is out of the queue, unless its replica was assumed dead.
function queue.lowest_waiting_ticket(keys, state, call)
  if state.unsorted == 1 then
    return 0
  end
  local head = queue.read(keys, state, call).places > 0 and fifo_list.first_ticket(keys)
  return head or math.max(state.ticket + 1, call.now_us)
end

return queue
