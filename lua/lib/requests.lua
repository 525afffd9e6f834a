-- The requests of a key of which more is known than that they are approved. A hash, `records`, has them: request id -> JSON
-- with the fields of KEPT, those that say nothing left out. Most approvals have none.
--
-- The states, with what a request counts and how it goes on:
--   waiting    nothing; it is approved, or withdrawn
--   unclaimed  as a held one: it is approved, and kept for the caller of a kept place, who may claim it (lib/holds)
--   held       in every window, until it is released or its hold lapses. A record without a state is of this one
--   approved   in its windows; it is released, or ceases to count
--   released   nothing
--   lapsed     nothing: its hold has lapsed
-- Records of the last three are remembered of requests whose callers have chosen their ids: so that no check gets such an
-- approval again; and of approvals that count in limits of their group. A sorted set, `ends`, has these ids by the end of that time.
--
-- The owner is the check that a request with such an id belongs to now, `<replica id>#<number>`. A later check with the same id
-- takes the request over. The entry of the queue's list keeps the replica on which the request waited first.
--
-- The state's field `ends` says until when anything may be remembered, in ms since 1970.

local chunks = require 'lib/chunks'
local digits = require 'lib/digits'
local generations = require 'lib/generations'
local json = require 'lib/json'
local reads = require 'lib/reads'
local replicas = require 'queue/replicas'

local requests = {
  WAITING = 'waiting', UNCLAIMED = 'unclaimed', HELD = 'held', APPROVED = 'approved', RELEASED = 'released', LAPSED = 'lapsed',
}

-- What is kept of a request in each state, besides the state. Times are ms since 1970, and lengths ms.
--   ticket         its arrival (queue/entries), a text
--   hits           if it has not exactly one
--   took           if its hits were corrected while it is held: how many it takes now
--   holdMillis     the length of its hold, from its grant or its claim on
--   renewedMillis  if it was renewed with another length: that
--   holder, since  who holds it, if its check has said so, and since when: with any of LABELS
--   keepMillis     for how long its place, or its approval, is kept without its caller
--   maxWaitMillis  with `keepMillis`: how long it waits at most
--   list           its lane or group (queue/lists)
--   owner          if its caller has chosen the id
local KEPT = {
  waiting = { 'ticket', 'hits', 'holdMillis', 'holder', 'keepMillis', 'maxWaitMillis', 'list', 'owner' },
  unclaimed = { 'hits', 'holdMillis', 'holder', 'since', 'keepMillis', 'list', 'owner' },
  held = { 'hits', 'took', 'holdMillis', 'renewedMillis', 'holder', 'since', 'list', 'owner' },
  approved = { 'hits', 'list', 'owner' },
  released = { 'hits', 'holdMillis', 'list', 'owner' },
  lapsed = { 'hits', 'holdMillis', 'list', 'owner' },
}

-- The texts for people who look at a held approval.
requests.LABELS = { 'holder' }

-- As most waiters are, which have nothing but a ticket.
local TICKET_ONLY, END_OF_TICKET = '{"state":"waiting","ticket":"', '"}'

local LIST_FIELDS = { 'headStartMillis', 'weight' }

local function format_list(list)
  local fields = json.fields(list, LIST_FIELDS)
  return json.object(json.join(string.format('"kind":"%s","name":%s', list.kind, cjson.encode(list.name)), fields))
end

local function format_value(value)
  if type(value) == 'table' then
    return format_list(value)
  end
  return type(value) == 'number' and digits(value) or cjson.encode(value)
end

local function has_only_ticket(request)
  return request.state == requests.WAITING and request.hits == 1
    and not (request.holdMillis or request.list or request.owner or request.keepMillis)
end

local function format(request)
  local state = request.state
  if has_only_ticket(request) then
    return TICKET_ONLY .. request.ticket .. END_OF_TICKET
  end
  local parts = { state ~= requests.HELD and '"state":"' .. state .. '"' or nil }
  for _, field in ipairs(KEPT[state]) do
    local value = request[field]
    if value and not (field == 'hits' and value == 1) then
      parts[#parts + 1] = '"' .. field .. '":' .. format_value(value)
    end
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- Gives the lane or group of a request what queue/lists asks of it: its id, its parameter, and the most that may wait in it.
local function complete_list(list)
  list.id, list.most = list.kind .. ':' .. list.name, list.maxRequests
  list.parameter = list.kind == 'lane' and (list.headStartMillis or 0) or list.weight
end

-- The replica of an owner, and the number of the check there.
function requests.split_owner(owner)
  local separator = string.find(owner, '#', 1, true)
  return string.sub(owner, 1, separator - 1), tonumber(string.sub(owner, separator + 1))
end

local function parse(id, text)
  local request
  if #text == #TICKET_ONLY + 18 and string.sub(text, 1, #TICKET_ONLY) == TICKET_ONLY then
    request = { state = requests.WAITING, ticket = string.sub(text, #TICKET_ONLY + 1, -1 - #END_OF_TICKET) }
  else
    request = cjson.decode(text)
    request.state = request.state or requests.HELD
  end
  request.requestId, request.hits = id, request.hits or 1
  if request.list then
    complete_list(request.list)
  end
  if request.owner then
    -- Under which its place counts: see queue/replicas.
    request.replica_id = replicas.id_of(requests.split_owner(request.owner), request.keepMillis)
  end
  return request
end

-- Completes what a caller says of a request, with the names of KEPT and, each left out where it says nothing, `canWait`, `noPlace`
-- and `takesRest`; and `number`, of the check among those of its replica, if its caller has chosen the id.
function requests.complete(call, request)
  request.hits = request.hits or 1
  if request.list then
    complete_list(request.list)
  end
  request.owner = request.number and call.replica .. '#' .. digits(request.number) or nil
  return request
end

-- The requests of checks, by their ids. `said`: a list with what each says, or one for all of them, which then all look it up.
function requests.of_checks(call, ids, said)
  local all, of_all = {}, #said == 0 and { __index = requests.complete(call, said) } or nil
  for i, id in ipairs(ids) do
    local request = of_all and setmetatable({}, of_all) or requests.complete(call, said[i])
    request.requestId = id
    all[i] = request
  end
  return all
end

function requests.has_any(state)
  return state.ticket > 0 or state.first_lapse > 0 or state.ends > 0
end

-- The requests with these ids, by the ids. Those whose holds Redis has lost with a state before are none: nothing counts them.
-- `state`: nil for all of them.
function requests.find_all(keys, state, ids)
  local found = {}
  for i, text in ipairs(chunks.list('HMGET', keys.records, ids)) do
    local request = text and parse(ids[i], text)
    if request and not (state and state.first_lapse == 0 and requests.counts_as_held(request)) then
      found[ids[i]] = request
    end
  end
  return found
end

function requests.find(keys, state, id)
  return requests.find_all(keys, state, { id })[id]
end

function requests.ids_of(all)
  local ids = {}
  for i, request in ipairs(all) do
    ids[i] = request.requestId
  end
  return ids
end

-- Adds the lists of requests that have any to others.
function requests.lists_of(all, others)
  local some = others or {}
  for _, request in ipairs(all) do
    some[#some + 1] = request.list
  end
  return some
end

function requests.counts_as_held(request)
  return request.state == requests.HELD or request.state == requests.UNCLAIMED
end

-- Whether it has a group with limits of its own.
function requests.has_limited_group(state, request)
  return #state.of_groups > 0 and request.list ~= nil and request.list.kind == 'group'
end

-- Whether there is a record of it once it is approved. Of an approval that counts in limits of its group, that names the group.
function requests.is_recorded(state, request)
  return (request.holdMillis or request.keepMillis or request.owner) ~= nil or requests.has_limited_group(state, request)
end

function requests.has_label(request)
  for _, label in ipairs(requests.LABELS) do
    if request[label] then
      return true
    end
  end
  return false
end

-- Whether its check is still to be told what becomes of it.
function requests.is_undecided(request)
  return request.state == requests.WAITING or request.state == requests.UNCLAIMED
end

function requests.write(keys, state, written)
  local values = {}
  for _, request in ipairs(written) do
    values[#values + 1], values[#values + 2] = request.requestId, format(request)
  end
  chunks.call('HSET', keys.records, values)
  state.needs_expiry = true
end

function requests.forget(keys, ids)
  chunks.call('HDEL', keys.records, ids)
end

-- Forgets requests whose callers have chosen their ids, and may ask with them again as with new ones.
function requests.forget_chosen(keys, ids)
  chunks.call('SREM', keys.requests, ids)
  requests.forget(keys, ids)
end

-- All that have records, by their ids.
function requests.read_all(keys)
  local values, all = reads.add(redis.call('HGETALL', keys.records), 2), {}
  for i = 1, #values, 2 do
    all[values[i]] = parse(values[i], values[i + 1])
  end
  return all
end

-- Forgets the requests for which `is_over(request)` is true.
function requests.forget_those(keys, is_over)
  local gone = {}
  for id, request in pairs(requests.read_all(keys)) do
    gone[#gone + 1] = is_over(request) and id or nil
  end
  requests.forget(keys, gone)
end

function requests.forget_waiting(keys)
  requests.forget_those(keys, function(request)
    return request.state == requests.WAITING
  end)
end

local function ends_name(keys)
  return keys.state .. ':ends'
end

-- Until when a request is remembered that changes now: for as long as lib/past-requests remembers approvals.
local function remembered_until(state, call)
  return math.max(state.own:ends() + generations.COUNT * state.own.window, call.now_ms + (generations.COUNT - 1) * call.lease)
end

-- Not sooner than it was to be remembered before, when windows may have been longer.
local function remember_until(keys, state, id, until_ms)
  redis.call('ZADD', ends_name(keys), 'GT', digits(until_ms), id)
  state.ends = math.max(state.ends, until_ms)
end

local REMEMBERED = { [requests.APPROVED] = true, [requests.RELEASED] = true, [requests.LAPSED] = true }

function requests.count_remembered(keys)
  return redis.call('ZCARD', ends_name(keys))
end

-- Somebody may have removed the end of the time for which a request is remembered.
function requests.restore_end(keys, state, call, request)
  if REMEMBERED[request.state] then
    local until_ms = remembered_until(state, call)
    redis.call('ZADD', ends_name(keys), 'NX', digits(until_ms), request.requestId)
    state.ends, state.needs_expiry = math.max(state.ends, until_ms), true
  end
end

-- Forgets those of these ids that are remembered. Others are not over, and have been remembered before.
local function forget_remembered(keys, ids)
  local gone = {}
  for id, request in pairs(requests.find_all(keys, nil, ids)) do
    gone[#gone + 1] = REMEMBERED[request.state] and id or nil
  end
  requests.forget(keys, gone)
end

-- As many are remembered as are approved and remembered besides. Those go first whose time ends first.
local function bound(keys, call)
  local name = ends_name(keys)
  local most = (generations.COUNT + 1) * call.max_ids
  local excess = redis.call('ZCARD', name) - most
  if excess > 0 then
    forget_remembered(keys, redis.call('ZRANGE', name, 0, excess - 1))
    redis.call('ZREMRANGEBYRANK', name, 0, excess - 1)
  end
end

-- A request whose caller has chosen its id is not held and waits no more. `as`: its state.
function requests.remember(keys, state, call, request, as)
  request.state = as
  requests.write(keys, state, { request })
  remember_until(keys, state, request.requestId, remembered_until(state, call))
  bound(keys, call)
end

-- Looks until when any are remembered, also from a state that Redis has lost.
function requests.find_remembered(keys, state)
  local last = redis.call('ZRANGE', ends_name(keys), -1, -1, 'WITHSCORES')[2]
  state.ends = tonumber(last or 0)
end

-- Forgets what has been remembered for long enough. `find_needed(ids)`: says by the ids which of them are remembered for longer.
function requests.forget_ended(keys, state, call, find_needed)
  if state.ends == 0 then
    return
  end
  local name, now, over = ends_name(keys), digits(call.now_ms), {}
  local due = reads.add(redis.call('ZRANGE', name, '-inf', now, 'BYSCORE'), 1)
  chunks.call('ZREM', name, due)
  local needed = find_needed(due)
  for _, id in ipairs(due) do
    if needed[id] then
      remember_until(keys, state, id, remembered_until(state, call))
    else
      over[#over + 1] = id
    end
  end
  forget_remembered(keys, over)
  requests.find_remembered(keys, state)
end

-- What wakes and replies call a request: by its id, and by its owner if it has one.
function requests.claim(id, owner)
  return owner and id .. '#' .. owner or id
end

-- The key is removed, and nothing of it is remembered.
function requests.remove_all(keys, state)
  if state.ends > 0 then
    redis.call('UNLINK', keys.records, ends_name(keys))
  end
end

-- Sets when the records expire. `has_any`: whether anybody waits or holds an approval.
function requests.expire(keys, state, has_any, expire_at)
  if has_any or state.ends > 0 then
    redis.call('PEXPIREAT', keys.records, expire_at)
  end
  if state.ends > 0 then
    redis.call('PEXPIREAT', ends_name(keys), expire_at)
  end
end

return requests
