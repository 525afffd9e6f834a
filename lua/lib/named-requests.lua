-- The requests whose ids their callers have chosen. Ids that Sluice makes have no record, and cost nothing. Hashes have the
-- records, request id -> `<hits>:<hold in ms, or 0>:<owner>`, with `+<ms>` after the hold if the place is kept for its
-- caller that long, then `^<ms>` if it waits no longer than that, and before all that the outcome of a request that waits no more:
--   records                   the requests that wait
--   granted                   `granted:`, the requests whose approvals are kept for their callers (lib/unclaimed-approvals)
--   outcomes                  `approved:` or `released:`, of requests that were approved since the last generation ended
--   outcomes:1 to outcomes:3  the same of earlier generations: as long as lib/past-requests remembers approvals
--
-- The owner is the check that the request belongs to now, `<replica id>#<number>`. A later check with the same id takes the
-- request over. The entry of the queue's list keeps the replica on which the request waited first.
--
-- The state's field `named` says until when any hash may have records, in ms since 1970, so that other keys, where it is 0,
-- need no look at them.
--
-- The names are built here: declared names cost Redis time in each call.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local entries = require 'queue/entries'
local generations = require 'lib/generations'
local more = require 'lib/more'
local replicas = require 'queue/replicas'
local weight = require 'lib/weight'

local named_requests = {}

local WAITING, GRANTED, APPROVED, RELEASED = 'waiting', 'granted', 'approved', 'released'
named_requests.WAITING, named_requests.GRANTED = WAITING, GRANTED
named_requests.APPROVED, named_requests.RELEASED = APPROVED, RELEASED

-- The positions of the first names among the built ones.
local RECORDS, GRANTS, OUTCOMES = 1, 2, 3
local POSITIONS = { [WAITING] = RECORDS, [GRANTED] = GRANTS, [APPROVED] = OUTCOMES, [RELEASED] = OUTCOMES }

local function records_name(keys)
  return keys.state .. ':records'
end

local function granted_name(keys)
  return keys.state .. ':granted'
end

local function outcomes_name(keys, generation)
  return keys.state .. ':outcomes' .. (generation and ':' .. generation or '')
end

-- Built once in a call, since each name costs as much as a command.
function named_requests.built_names(keys)
  if not keys.of_named then
    local names = { records_name(keys), granted_name(keys), outcomes_name(keys) }
    for generation = 1, generations.COUNT do
      names[OUTCOMES + generation] = outcomes_name(keys, generation)
    end
    keys.of_named = names
  end
  return keys.of_named
end

-- While a slot of a cluster moves, Redis fails a command on a name that it does not find. This meets the names before
-- anything is written.
function named_requests.require_names(keys)
  redis.call('EXISTS', unpack(named_requests.built_names(keys)))
end

-- The id under which the place of an owner counts that is kept for `keep` ms, or nil: see queue/replicas.
local function replica_of(owner, keep)
  return replicas.id_of(string.match(owner, '^(.*)#%d+$'), keep)
end

-- Parses the record of an id; nil if there is none.
local function parse(id, text)
  if not text then
    return nil
  end
  local outcome, hits, hold, keep, max_wait, owner = string.match(text, '^(%a*):?(%d+):(%d+)%+?(%d*)%^?(%d*):(.*)$')
  keep = tonumber(keep)
  return {
    requestId = id, is = outcome == '' and WAITING or outcome, hits = tonumber(hits),
    holdMillis = tonumber(hold) > 0 and tonumber(hold) or nil, keepMillis = keep, maxWaitMillis = tonumber(max_wait),
    owner = owner, replica_id = replica_of(owner, keep),
  }
end

local function format(is, request)
  local outcome = is == WAITING and '' or is .. ':'
  local keep = request.keepMillis and '+' .. digits(request.keepMillis) or ''
  local max_wait = is == WAITING and request.keepMillis and request.maxWaitMillis and '^' .. digits(request.maxWaitMillis) or ''
  return outcome .. digits(request.hits) .. ':' .. digits(request.holdMillis or 0) .. keep .. max_wait .. ':' .. request.owner
end

-- Finds what a hash has of ids: their records, or nil. Returns the ids of which it has none.
local function find_in(name, ids, found)
  local missing = {}
  for i, text in ipairs(chunks.list('HMGET', name, ids)) do
    local id = ids[i]
    found[id] = parse(id, text)
    if not text then
      missing[#missing + 1] = id
    end
  end
  return missing
end

-- The records of ids, by the ids. A record of one who waits no more was left by an earlier version: it is none.
function named_requests.find_all(keys, ids)
  local found = {}
  if #ids == 0 then
    return found
  end
  local names = named_requests.built_names(keys)
  local missing, waiting = find_in(names[RECORDS], ids, found), {}
  for _, id in ipairs(ids) do
    if found[id] then
      waiting[#waiting + 1] = id
    end
  end
  for i, value in ipairs(chunks.list('HMGET', keys.waiting, waiting)) do
    local id = waiting[i]
    if value then
      found[id].ticket, found[id].place = tonumber(entries.ticket_of(value)), value
    else
      missing[#missing + 1] = id
    end
  end
  for i = GRANTS, #names do
    missing = find_in(names[i], missing, found)
  end
  return found
end

-- The record of an id; nil if there is none.
function named_requests.find(keys, id)
  return named_requests.find_all(keys, { id })[id]
end

-- Forgets ids: from now on they are new. Those that were approved by a limit without fixed windows are still in the set of
-- the period, which would keep their next approvals from counting.
function named_requests.forget(keys, ids)
  if #ids == 0 then
    return
  end
  chunks.call('SREM', keys.requests, ids)
  for _, name in ipairs(named_requests.built_names(keys)) do
    chunks.call('HDEL', name, ids)
  end
end

-- A record has changed, and is remembered from now on for as long as an approval (lib/past-requests).
local function note_change(state, call)
  local until_ms = call.now_ms + math.max(generations.COUNT * state.own.window, (generations.COUNT - 1) * call.lease)
  -- The expiry of the names follows from that.
  more.set(state, 'named', math.max(state.named, until_ms))
end

-- Writes the records of requests, which may have had others. `is`: what becomes of them all. `requests`: of each requestId,
-- hits, holdMillis, keepMillis, maxWaitMillis and owner.
function named_requests.write(keys, state, call, is, requests)
  if #requests == 0 then
    return
  end
  local names = named_requests.built_names(keys)
  local name = names[POSITIONS[is]]
  local ids, records = {}, {}
  for i, request in ipairs(requests) do
    ids[i] = request.requestId
    records[2 * i - 1], records[2 * i] = request.requestId, format(is, request)
  end
  for _, other in ipairs(names) do
    if other ~= name then
      chunks.call('HDEL', other, ids)
    end
  end
  chunks.call('HSET', name, records)
  note_change(state, call)
end

-- The ids under which the places of all that wait count, by their request ids. Few calls need them.
function named_requests.replicas(keys, state)
  local counted_as = {}
  if state.named > 0 then
    local all = weight.add(redis.call('HGETALL', records_name(keys)), 2)
    for i = 1, #all, 2 do
      counted_as[all[i]] = parse(all[i], all[i + 1]).replica_id
    end
  end
  return counted_as
end

-- Forgets waiters that have left the queue without an approval.
function named_requests.forget_waiting(keys, state, ids)
  if state.named > 0 then
    chunks.call('HDEL', records_name(keys), ids)
  end
end

-- Gives waiters, a list of { requestId, replica_id }, the owners in their records, the ids under which their places count,
-- for how many ms these are kept, and how long they wait at most.
function named_requests.resolve(keys, state, waiters)
  if state.named == 0 or #waiters == 0 then
    return
  end
  local ids = {}
  for i, waiter in ipairs(waiters) do
    ids[i] = waiter.requestId
  end
  for i, text in ipairs(chunks.list('HMGET', records_name(keys), ids)) do
    local record = parse(ids[i], text)
    if record then
      waiters[i].owner, waiters[i].replica_id = record.owner, record.replica_id
      waiters[i].keepMillis, waiters[i].maxWaitMillis = record.keepMillis, record.maxWaitMillis
    end
  end
end

-- Waiters, as resolved, have left the queue; those of them with `is_approved` have approvals, which are kept for the callers
-- of kept places.
function named_requests.leave_queue(keys, state, call, waiters)
  if state.named == 0 then
    return
  end
  local gone, outcomes, granted = {}, {}, {}
  for _, waiter in ipairs(waiters) do
    if waiter.owner then
      gone[#gone + 1] = waiter.requestId
    end
    if waiter.owner and waiter.is_approved then
      local records = waiter.keepMillis and granted or outcomes
      records[#records + 1] = waiter.requestId
      records[#records + 1] = format(waiter.keepMillis and GRANTED or APPROVED, waiter)
    end
  end
  if #outcomes > 0 or #granted > 0 then
    chunks.call('HSET', outcomes_name(keys), outcomes)
    chunks.call('HSET', granted_name(keys), granted)
    note_change(state, call)
  end
  chunks.call('HDEL', records_name(keys), gone)
end

-- The records of the ids among these whose approvals are unclaimed, as a list.
function named_requests.find_granted(keys, state, ids)
  local found = {}
  if state.named == 0 then
    return found
  end
  for i, text in ipairs(chunks.list('HMGET', granted_name(keys), ids)) do
    found[#found + 1] = parse(ids[i], text)
  end
  return found
end

-- The records of all unclaimed approvals.
function named_requests.find_all_granted(keys, state)
  local found = {}
  if state.named > 0 then
    local all = weight.add(redis.call('HGETALL', granted_name(keys)), 2)
    for i = 1, #all, 2 do
      found[#found + 1] = parse(all[i], all[i + 1])
    end
  end
  return found
end

-- Forgets unclaimed approvals, by their records.
function named_requests.forget_granted(keys, records)
  local ids = {}
  for i, record in ipairs(records) do
    ids[i] = record.requestId
  end
  chunks.call('HDEL', granted_name(keys), ids)
end

-- The owner of an approval of which several checks were told: none of them gives it back, since the caller may use it. It
-- may have the answer to a check that was sent after this one, if a frozen replica sends this one late.
function named_requests.no_check(call)
  return call.replica .. '#0'
end

-- What wakes and replies call a request: by its id, and with a record also by its owner.
function named_requests.claim(id, owner)
  return owner and id .. '#' .. owner or id
end

-- Looks whether records are left from a state that Redis has lost.
function named_requests.find_leftovers(keys, state, call)
  if redis.call('EXISTS', unpack(named_requests.built_names(keys))) > 0 then
    note_change(state, call)
  end
end

-- The key is removed, and nothing of it is remembered.
function named_requests.remove_all(keys, state)
  if state.named > 0 then
    redis.call('UNLINK', unpack(named_requests.built_names(keys)))
  end
end

-- Nobody waits any more.
function named_requests.drop_waiting(keys, state)
  if state.named > 0 then
    redis.call('UNLINK', records_name(keys))
  end
end

-- A generation of remembered approvals ends, and becomes this one.
function named_requests.end_generation(keys, state, generation)
  if state.named == 0 then
    return
  end
  generations.keep(outcomes_name(keys), outcomes_name(keys, generation))
  if redis.call('EXISTS', unpack(named_requests.built_names(keys))) == 0 then
    more.set(state, 'named', 0)
  end
end

-- Sets when all of them expire.
function named_requests.expire(keys, state, expire_at)
  if state.named > 0 then
    for _, name in ipairs(named_requests.built_names(keys)) do
      redis.call('PEXPIREAT', name, expire_at)
    end
  end
end

return named_requests
