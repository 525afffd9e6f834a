-- The waiters of a limiter key, in three keys of Redis:
--   queue     a list of entries, `<ticket>:<request id>@<replica id>`, first come first; after the id, `*<hits>` if the
--             waiter needs more than one hit, and `~<ms>` if its approval will be held
--   waiting   a hash, request id -> ticket: an entry of the list that is not in this hash with the same ticket is
--             withdrawn, and is skipped when it comes to the head
--   replicas  a hash, replica id -> `<until when its lease runs, in ms>:<its places>`; the sum of all places is the
--             size of `waiting`
-- So no script searches the list. The places of a replica whose lease has run out do not count, and are
-- also skipped. They count again if the replica renews its lease after all.
--
-- A ticket is the time of arrival in Redis's microseconds, raised if needed, so that no ticket is given out twice.
-- Tickets keep the order of arrival, also when a replica puts its waiters back after Redis lost its memory. They have
-- sixteen digits until the year 2286, so entries sort as texts.
--
-- While a slot of a cluster moves, Redis fails a script at the first key that it does not find, even if the script
-- itself has emptied the key. So a script adds approved ids to the set before it touches the queue. A queue that
-- becomes empty is removed as a whole and not read again.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local further = require 'lib/further'
local recovery = require 'lib/recovery'
local stored = require 'lib/stored'
local weight = require 'lib/weight'

local queue = {}

-- A script reads at least this many entries if it may have to skip some at the head.
local LOOK_AHEAD = 100
-- A list of up to this many entries is never compacted.
local COMPACTION_SLACK = 100

local function new_queue()
  return { places = 0, living = 0, replicas = {} }
end

local function format_ticket(ticket)
  return string.format('%016.0f', ticket)
end

function queue.ticket_of(entry)
  return string.sub(entry, 1, 16)
end

-- Returns ticket, request id, replica id, hits and, if the approval will be held, for how many ms.
local function split_entry(entry)
  local ticket, request_id, hits, hold, replica_id = string.match(entry, '^(%d+):([^@*~]*)%*?(%d*)~?(%d*)@(.*)$')
  return ticket, request_id, replica_id, tonumber(hits) or 1, tonumber(hold)
end

local function format_entry(ticket, waiter, replica_id)
  local hits = waiter.hits == 1 and '' or '*' .. digits(waiter.hits)
  local hold = waiter.hold and '~' .. digits(waiter.hold) or ''
  return ticket .. ':' .. waiter.request_id .. hits .. hold .. '@' .. replica_id
end

-- No ticket given out before was greater, unless Redis has lost the key. After the clock has gone back, no ticket is
-- older than the key.
function queue.last_ticket(keys, state)
  return state.ticket > 0 and state.ticket or stored.born_at(keys, state) * 1000
end

function queue.next_ticket(keys, state, call)
  state.ticket = math.max(call.now_us, queue.last_ticket(keys, state) + 1)
  return state.ticket
end

-- Parses a value of the hash `replicas`; nil if there is none.
function queue.read_replica(text)
  if not text then
    return nil
  end
  local lease_ends, places = string.match(text, '^(%d+):(%d+)$')
  return { lease_ends = tonumber(lease_ends), places = tonumber(places) }
end

function queue.format_replica(replica)
  return string.format('%.0f:%.0f', replica.lease_ends, replica.places)
end

function queue.is_alive(replica, now_ms)
  return replica.lease_ends > now_ms
end

function queue.replica_of(tally, replica_id)
  local replica = tally.replicas[replica_id]
  if not replica then
    replica = { lease_ends = 0, places = 0 }
    tally.replicas[replica_id] = replica
  end
  return replica
end

local function add_places(tally, replica_id, count, now_ms)
  local replica = queue.replica_of(tally, replica_id)
  replica.places = replica.places + count
  replica.is_changed = true
  tally.places = tally.places + count
  if queue.is_alive(replica, now_ms) then
    tally.living = tally.living + count
  end
end

function queue.renew_lease(state, tally, call)
  local replica = queue.replica_of(tally, call.replica)
  if not queue.is_alive(replica, call.now_ms) then
    tally.living = tally.living + replica.places
  end
  replica.lease_ends = call.now_ms + call.lease
  replica.is_changed = true
  state.set_at = call.now_ms
end

function queue.drop(keys, tally)
  redis.call('UNLINK', keys.queue, keys.waiting, keys.replicas)
  tally.places, tally.living, tally.replicas = 0, 0, {}
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
local function recount(keys, tally, now_ms)
  local places = tally.places
  tally.places, tally.living = 0, 0
  for _, replica in pairs(tally.replicas) do
    replica.places = 0
    replica.is_changed = true
  end
  local tickets = waiting_tickets(keys)
  for _, entry in ipairs(weight.add(redis.call('LRANGE', keys.queue, 0, -1), 1)) do
    local ticket, _, replica_id = split_entry(entry)
    if tickets[ticket] then
      tickets[ticket] = nil
      add_places(tally, replica_id, 1, now_ms)
    end
  end
  if tally.places == 0 or tally.places ~= places then
    queue.drop(keys, tally)
  end
end

-- Reads how many waiters each replica has: `places` counts all waiters, `living` those of living replicas.
-- Returns the queue, and whether the two hashes agree. A queue that becomes empty is removed as a whole.
function queue.load(keys, now_ms)
  local tally = new_queue()
  tally.places = redis.call('HLEN', keys.waiting)
  if tally.places == 0 then
    return tally, redis.call('EXISTS', keys.replicas) == 0
  end
  local counted = 0
  local replicas = weight.add(redis.call('HGETALL', keys.replicas), 2)
  for i = 1, #replicas, 2 do
    local replica = queue.read_replica(replicas[i + 1])
    tally.replicas[replicas[i]] = replica
    counted = counted + replica.places
    if queue.is_alive(replica, now_ms) then
      tally.living = tally.living + replica.places
    end
  end
  return tally, counted == tally.places
end

-- After the clock has gone back, no lease lasts longer than the caller's from now on. Those that are cut do not end.
local function cut_leases(tally, call)
  local latest = call.now_ms + call.lease
  for _, replica in pairs(tally.replicas) do
    if replica.lease_ends > latest then
      replica.lease_ends, replica.is_changed = latest, true
    end
  end
end

-- Whether the list can't be that of so many waiters. A list without waiters is what is left if both hashes were removed.
local function is_list_torn(keys, places)
  local length = redis.call('LLEN', keys.queue)
  return length < places or (places == 0 and length > 0)
end

-- The queue, read at most once per script. If somebody else has removed some of its keys, it is repaired, and replicas
-- get time to put back the waiters that were lost with it.
function queue.read(keys, state, call)
  if not state.tally then
    local hashes_agree
    state.tally, hashes_agree = queue.load(keys, call.now_ms)
    -- Tickets are times, a little later than now if many join at once. Only `renew` extends leases without a note in the
    -- state, which the caller's own lease shows. A lease of another that is longer than the caller's shows nothing: while
    -- replicas restart, they may have different settings.
    local own = state.tally.replicas[call.replica]
    if state.clock_went_back or state.ticket > call.now_us + 1000000
      or (own and own.lease_ends > call.now_ms + call.lease)
    then
      cut_leases(state.tally, call)
    end
    if not hashes_agree or is_list_torn(keys, state.tally.places) then
      recount(keys, state.tally, call.now_ms)
      recovery.begin_after_loss_of_queue(keys, state, call)
    end
  end
  return state.tally
end

-- Removes withdrawn entries if they are more than half of the list. It also removes the waiters of dead replicas if
-- they are more than one outage of Redis explains: replicas that seem dead after an outage, and newcomers after it,
-- fill the queue at most twice.
--
-- Joins and settles call it. Withdrawals do not: each of many at the same time would compact the list.
function queue.compact(keys, state, now_ms)
  local tally = state.tally
  local removes_dead = tally.places > 2 * state.queue_max + COMPACTION_SLACK
  local kept_places = removes_dead and tally.living or tally.places
  if redis.call('LLEN', keys.queue) <= 2 * kept_places + COMPACTION_SLACK then
    return
  end
  local tickets = waiting_tickets(keys)
  local kept, dead = {}, {}
  for _, entry in ipairs(weight.add(redis.call('LRANGE', keys.queue, 0, -1), 1)) do
    local ticket = queue.ticket_of(entry)
    if tickets[ticket] then
      tickets[ticket] = nil
      local is_dead = false
      if removes_dead then
        local _, request_id, replica_id = split_entry(entry)
        is_dead = not queue.is_alive(queue.replica_of(tally, replica_id), now_ms)
        if is_dead then
          dead[#dead + 1] = request_id
          add_places(tally, replica_id, -1, now_ms)
        end
      end
      if not is_dead then
        kept[#kept + 1] = entry
      end
    end
  end
  chunks.call('HDEL', keys.waiting, dead)
  redis.call('UNLINK', keys.queue)
  chunks.call('RPUSH', keys.queue, kept)
  state.changed = true
end

-- Adds waiters of the caller to the end of the queue. `waiters`: of each its request id, ticket, hits and hold.
function queue.join(keys, state, call, waiters)
  local tally = queue.read(keys, state, call)
  local tickets, entries = {}, {}
  for _, waiter in ipairs(waiters) do
    local ticket = format_ticket(waiter.ticket)
    tickets[#tickets + 1] = waiter.request_id
    tickets[#tickets + 1] = ticket
    entries[#entries + 1] = format_entry(ticket, waiter, call.replica)
  end
  local new = chunks.call('HSET', keys.waiting, tickets)
  chunks.call('RPUSH', keys.queue, entries)
  queue.renew_lease(state, tally, call)
  add_places(tally, call.replica, new, call.now_ms)
  queue.compact(keys, state, call.now_ms)
  stored.more_changed(state)
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
    local head = redis.call('LINDEX', keys.queue, 0)
    first = head and tonumber(queue.ticket_of(head)) or 0
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
-- recovery hold, and always before anybody is served. `waiters`: as for `queue.join`, lowest ticket first.
function queue.rejoin(keys, state, call, waiters)
  local last = redis.call('LINDEX', keys.queue, -1)
  if last and tonumber(queue.ticket_of(last)) > waiters[1].ticket then
    state.unsorted = 1
  end
  state.has_rejoined = true
  queue.join(keys, state, call, waiters)
  state.ticket = math.max(queue.last_ticket(keys, state), waiters[#waiters].ticket)
end

-- Withdraws waiters of the caller. Returns how many of the ids waited.
function queue.withdraw(keys, state, call, ids)
  local tally = queue.read(keys, state, call)
  if tally.places == 0 then
    return 0
  end
  local withdrawn = chunks.call('HDEL', keys.waiting, ids)
  if withdrawn == 0 then
    return 0
  end
  add_places(tally, call.replica, -withdrawn, call.now_ms)
  state.changed = true
  if tally.places == 0 then
    redis.call('UNLINK', keys.queue, keys.replicas)
    tally.replicas = {}
  end
  return withdrawn
end

function queue.sort(keys, state, call)
  -- A list in which nobody waits would be stored without an expiry.
  if queue.read(keys, state, call).places > 0 then
    weight.read = weight.read + redis.call('SORT', keys.queue, 'ALPHA', 'STORE', keys.queue)
  end
  state.unsorted = 0
  state.changed = true
end

-- Reads entries: a list of { ticket, request_id, replica_id, hits, hold, is_waiting }.
-- `has_withdrawn`: the list may have withdrawn entries, or one entry twice.
function queue.read_entries(keys, entries, has_withdrawn)
  local read, ids, tickets = {}, {}, {}
  for i, entry in ipairs(entries) do
    local ticket, request_id, replica_id, hits, hold = split_entry(entry)
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
  return read
end

-- Whether a waiter fits into what is left, which it takes: hits of the maximum, room in further limits, and a place among
-- the approvals that are kept, which are the ids of the window and the holds.
local function takes_its_room(state, left, entry)
  -- A waiter that needs more than the maximum, which was lowered since, gets a window for itself.
  local fits = entry.hits <= left.hits or left.hits == state.max
  if not fits or (entry.hold and left.holds or left.ids) <= 0 then
    return false
  elseif left.further and not further.take_room(state, left.further, entry.hits, entry.hold ~= nil) then
    return false
  end
  left.hits = left.hits - entry.hits
  if entry.hold then
    left.holds = left.holds - 1
  else
    left.ids = left.ids - 1
  end
  return true
end

-- Takes entries from the head: waiters of living replicas, as long as they fit into what is `left`, and the entries before
-- them that are skipped. `most`: how many waiters at most. Calls `approve(ids, terms)` before it touches the queue. Returns
-- how many entries it took, and whether the head needs more than is left.
function queue.take_heads(keys, state, now_ms, left, most, approve)
  local tally = state.tally
  local length = redis.call('LLEN', keys.queue)
  local looked_at = length == tally.living and most or math.max(most, LOOK_AHEAD)
  local entries = weight.add(redis.call('LRANGE', keys.queue, 0, looked_at - 1), 1)
  local ids, terms, gone = {}, {}, {}
  local taken, has_terms, is_blocked = 0, state.further ~= nil, false
  for _, entry in ipairs(queue.read_entries(keys, entries, length ~= tally.places)) do
    if #ids == most then
      break
    end
    local counts = entry.is_waiting and queue.is_alive(queue.replica_of(tally, entry.replica_id), now_ms)
    if counts and not takes_its_room(state, left, entry) then
      is_blocked = true
      break
    end
    taken = taken + 1
    if entry.is_waiting then
      gone[#gone + 1] = entry.request_id
      add_places(tally, entry.replica_id, -1, now_ms)
    end
    if counts then
      ids[#ids + 1] = entry.request_id
      terms[#terms + 1] = entry
      has_terms = has_terms or entry.hits ~= 1 or entry.hold ~= nil
    end
  end
  approve(ids, has_terms and terms or nil)
  if tally.places == 0 or (taken == 0 and not is_blocked) then
    -- The list is at its end.
    queue.drop(keys, tally)
  elseif taken > 0 then
    chunks.call('HDEL', keys.waiting, gone)
    redis.call('LTRIM', keys.queue, taken, -1)
  end
  return taken, is_blocked
end

-- Writes the replicas whose leases or numbers of places changed.
function queue.write_replicas(keys, tally)
  local changed, gone = {}, {}
  for replica_id, replica in pairs(tally.replicas) do
    if replica.is_changed and replica.places == 0 then
      gone[#gone + 1] = replica_id
    elseif replica.is_changed then
      changed[#changed + 1] = replica_id
      changed[#changed + 1] = queue.format_replica(replica)
    end
  end
  chunks.call('HSET', keys.replicas, changed)
  chunks.call('HDEL', keys.replicas, gone)
end

-- Every ticket below the one returned is out of the queue, unless its replica was assumed dead. A replica that has a
-- waiter with a lower ticket and no grant has missed the wake, or Redis has lost the place.
function queue.lowest_waiting_ticket(keys, state, call)
  if state.unsorted == 1 then
    return 0
  end
  local head = queue.read(keys, state, call).places > 0 and redis.call('LINDEX', keys.queue, 0)
  return head and tonumber(queue.ticket_of(head)) or math.max(state.ticket + 1, call.now_us)
end

return queue
