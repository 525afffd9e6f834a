-- The lists of a queue whose waiters have lanes or groups. Inside a list: first come, first served. Between lists of one
-- kind, the list goes first whose head has the smallest order key:
--   lane    the ticket of the head less its head start
--   group   its start tag (start-time fair queueing: Goyal, Vin, Cheng 1996). It grows by the hits of each approval from the
--           queue divided by the weight of the group, and not when a waiter leaves
-- Between heads with the same key: first come, first served. Of the kinds, the one goes first that has had waiters for longer,
-- until it has none. `fifo` is the kind of waiters without a lane or a group, which joined by other rules. It has one list.
--
-- Names in Redis:
--   queue         a sorted set of the entries of all lists (queue/entries), with score 0: a list is a range of it
--   heads:lane    a sorted set of the lanes with waiters, `<ticket of the head>:<list>`, by their order keys
--   heads:group   the same of the groups
--   finished      a sorted set of groups without waiters, by the tags with which they would go on
-- The hash `waiting` has `<ticket>:<list>` for these waiters. A list is `<kind>:<name>`, with the name percent-encoded.
--
-- The state's field `lists` has the kinds with waiters, the first one first, and the virtual time, `<kind>,<kind>:<number>`.
-- It is 0 in a key with one list (queue/fifo-list): other keys need no look at these names, which are built here.
--
-- A group that begins to wait starts at the virtual time, which is the greatest start tag that was served, but not before
-- any group that waits. Without that, groups that come once could pass those that wait without end. It goes on with its own tag
-- if that is greater. So for two groups that wait, the hits that each gets, divided by its weight, never differ by more than
-- the largest request of each.

local chunks = require 'lib/chunks'
local entries = require 'queue/entries'
local more = require 'lib/more'
local weight = require 'lib/weight'

local lists = { FIFO = 'fifo:' }

lists.KINDS_WITH_HEADS = { 'lane', 'group' }
-- Of more groups without waiters, those with the lowest tags are forgotten.
local MOST_FINISHED = 1000

function lists.heads_name(keys, kind)
  return keys.state .. ':heads:' .. kind
end

function lists.finished_name(keys)
  return keys.state .. ':finished'
end

local function built_names(keys)
  return lists.heads_name(keys, 'lane'), lists.heads_name(keys, 'group'), lists.finished_name(keys)
end

function lists.kind_of(id)
  return string.match(id, '^%l+')
end

-- Parses the list of a check or of a waiter that is put back: `<kind>:<name>:<head start in ms, or weight>`, and for a group
-- `:<the most that may wait>` after that if it has such a bound. nil for ''.
function lists.parse(text)
  local kind, name, parameter, most = string.match(text, '^(%l+):([^:]*):(%d+):?(%d*)$')
  if kind then
    return { kind = kind, id = kind .. ':' .. name, parameter = tonumber(parameter), most = tonumber(most) }
  end
end

-- The state's field; nil for none.
function lists.read(state, text)
  local kinds, virtual_time = string.match(text, '^([%l,]*):(.*)$')
  state.lists = { kinds = {}, virtual_time = tonumber(virtual_time) }
  for kind in string.gmatch(kinds, '%l+') do
    table.insert(state.lists.kinds, kind)
  end
end

function lists.format_number(number)
  return string.format('%.17g', number)
end

function lists.format(state)
  return state.lists and table.concat(state.lists.kinds, ',') .. ':' .. lists.format_number(state.lists.virtual_time) or 0
end

-- While a slot of a cluster moves, Redis fails a command on a name that it does not find. This meets the names before
-- anything is written.
function lists.require_names(keys)
  redis.call('EXISTS', built_names(keys))
end

function lists.expire(keys, state, expire_at)
  if state.lists then
    for _, name in ipairs({ built_names(keys) }) do
      redis.call('PEXPIREAT', name, expire_at)
    end
  end
end

-- Nobody waits any more.
function lists.drop(keys, state)
  if state.lists then
    redis.call('UNLINK', built_names(keys))
    state.lists = nil
    more.changed(state)
  end
end

local function first_of(keys, id, most)
  return weight.add(redis.call('ZRANGE', keys.queue, '[' .. id .. ' ', '(' .. id .. '!', 'BYLEX', 'LIMIT', 0, most), 1)
end

-- The ticket of an entry in a list, as a text.
local function ticket_in(entry, id)
  return string.sub(entry, #id + 2, #id + 1 + entries.TICKET)
end

local function head_of(entry, id)
  return ticket_in(entry, id) .. ':' .. id
end

-- The order key of a lane by its first entry.
local function key_of_lane(entry)
  local ticket, _, _, _, _, _, head_start = entries.split(entry)
  return tonumber(ticket) - head_start * 1000
end

-- The order key of a group that begins to wait.
local function begin_group(keys, state, id)
  local finished = redis.call('ZSCORE', lists.finished_name(keys), id)
  local smallest = redis.call('ZRANGE', lists.heads_name(keys, 'group'), 0, 0, 'WITHSCORES')[2]
  if finished then
    redis.call('ZREM', lists.finished_name(keys), id)
  end
  return math.max(state.lists.virtual_time, tonumber(smallest or 0), tonumber(finished or 0))
end

-- Groups have no waiters any more. `tags`: of each its tag, and its list.
function lists.end_groups(keys, state, tags)
  local name, kept = lists.finished_name(keys), {}
  for i = 1, #tags, 2 do
    if tags[i] > state.lists.virtual_time then
      kept[#kept + 1], kept[#kept + 2] = lists.format_number(tags[i]), tags[i + 1]
    end
  end
  chunks.call('ZADD', name, kept)
  local extra = #kept > 0 and redis.call('ZCARD', name) - MOST_FINISHED or 0
  if extra > 0 then
    chunks.call('ZREM', name, redis.call('ZRANGE', name, 0, extra - 1))
  end
end

local function is_empty(keys, kind)
  if kind == 'fifo' then
    return #first_of(keys, lists.FIFO, 1) == 0
  end
  return redis.call('ZCARD', lists.heads_name(keys, kind)) == 0
end

-- Forgets the kinds that have no waiters any more.
function lists.end_empty_kinds(keys, state)
  local left = {}
  for _, kind in ipairs(state.lists.kinds) do
    if not is_empty(keys, kind) then
      left[#left + 1] = kind
    elseif kind == 'group' then
      redis.call('UNLINK', lists.finished_name(keys))
      state.lists.virtual_time = 0
    end
  end
  state.lists.kinds = left
  more.changed(state)
end

local function begin_kind(state, kind)
  for _, other in ipairs(state.lists.kinds) do
    if other == kind then
      return
    end
  end
  table.insert(state.lists.kinds, kind)
  more.changed(state)
end

-- Adds entries of one list, in the order of their tickets.
local function add_to(keys, state, id, new)
  local kind, scored = lists.kind_of(id), {}
  for _, entry in ipairs(new) do
    scored[#scored + 1], scored[#scored + 2] = 0, entry
  end
  local before, name = first_of(keys, id, 1)[1], lists.heads_name(keys, kind)
  begin_kind(state, kind)
  chunks.call('ZADD', keys.queue, scored)
  if kind == 'fifo' or (before and before < new[1]) then
    return
  end
  local key = kind == 'lane' and key_of_lane(new[1])
    or tonumber(before and redis.call('ZSCORE', name, head_of(before, id)) or begin_group(keys, state, id))
  if before then
    redis.call('ZREM', name, head_of(before, id))
  end
  redis.call('ZADD', name, lists.format_number(key), head_of(new[1], id))
end

-- Adds entries, each with its list before it. They may be in any order.
function lists.add(keys, state, new)
  local by_list, ids = {}, {}
  for _, entry in ipairs(new) do
    local id = entries.split_list(entry)
    if not by_list[id] then
      by_list[id], ids[#ids + 1] = {}, id
    end
    table.insert(by_list[id], entry)
  end
  for _, id in ipairs(ids) do
    table.sort(by_list[id])
    add_to(keys, state, id, by_list[id])
  end
end

-- The queue has several lists from now on. `all`: its entries so far.
function lists.begin(keys, state, all)
  state.lists = { kinds = {}, virtual_time = 0 }
  redis.call('UNLINK', keys.queue, built_names(keys))
  local new = {}
  for i, entry in ipairs(all) do
    new[i] = lists.FIFO .. ' ' .. entry
  end
  if #new > 0 then
    add_to(keys, state, lists.FIFO, new)
  end
  more.changed(state)
end

-- How many entries there are.
function lists.length(keys)
  return redis.call('ZCARD', keys.queue)
end

function lists.all(keys)
  return weight.add(redis.call('ZRANGE', keys.queue, 0, -1), 1)
end

-- All entries of one list.
function lists.all_of(keys, id)
  return first_of(keys, id, -1)
end

-- How many entries a list has, or has before a ticket, which is a text.
function lists.count(keys, id, ticket)
  return redis.call('ZLEXCOUNT', keys.queue, '[' .. id .. ' ', '(' .. id .. (ticket and ' ' .. ticket or '!'))
end

-- Waiters leave a list without an approval. `tickets`: as texts.
local function remove_from(keys, state, id, tickets)
  local gone, lowest = {}, tickets[1]
  for _, ticket in ipairs(tickets) do
    local start = id .. ' ' .. ticket
    gone[#gone + 1] = redis.call('ZRANGE', keys.queue, '[' .. start .. ':', '(' .. start .. ';', 'BYLEX', 'LIMIT', 0, 1)[1]
    lowest = ticket < lowest and ticket or lowest
  end
  weight.read = weight.read + #tickets
  chunks.call('ZREM', keys.queue, gone)
  local kind = lists.kind_of(id)
  local name, head = lists.heads_name(keys, kind), lowest .. ':' .. id
  local key = kind ~= 'fifo' and redis.call('ZSCORE', name, head)
  if not key then
    return
  end
  redis.call('ZREM', name, head)
  local first = first_of(keys, id, 1)[1]
  if first then
    redis.call('ZADD', name, kind == 'lane' and lists.format_number(key_of_lane(first)) or key, head_of(first, id))
  elseif kind == 'group' then
    lists.end_groups(keys, state, { tonumber(key), id })
  end
end

-- The same for waiters of any lists. `values`: of the hash `waiting`.
function lists.remove(keys, state, values)
  local by_list = {}
  for _, value in ipairs(values) do
    local ticket, id = lists.split_waiting(value)
    by_list[id] = by_list[id] or {}
    table.insert(by_list[id], ticket)
  end
  for id, tickets in pairs(by_list) do
    remove_from(keys, state, id, tickets)
  end
  lists.end_empty_kinds(keys, state)
end

-- The value of a waiter in the hash `waiting`. `ticket`: as a text. `list`: nil without a lane or a group.
function lists.format_waiting(ticket, list)
  return list and ticket .. ':' .. list.id or ticket
end

-- The ticket in such a value, as a text, and the list.
function lists.split_waiting(value)
  local ticket, id = string.match(value, '^(%d+):?(.*)$')
  return ticket, id ~= '' and id or lists.FIFO
end

-- Counts the heads again from the entries. All groups begin at the virtual time.
local function restore_heads(keys, state)
  local all = lists.all(keys)
  redis.call('UNLINK', keys.queue, built_names(keys))
  lists.add(keys, state, all)
end

-- Somebody may have removed the heads, or the state that knew the lists: then no command on the one list finds any.
function lists.repair(keys, state)
  if not state.lists then
    local length = redis.pcall('LLEN', keys.queue)
    if type(length) == 'number' then
      return
    end
    state.lists = { kinds = {}, virtual_time = 0 }
    restore_heads(keys, state)
    return
  end
  local heads = 0
  for _, kind in ipairs(lists.KINDS_WITH_HEADS) do
    heads = heads + redis.call('ZCARD', lists.heads_name(keys, kind))
  end
  local has_fifo = #first_of(keys, lists.FIFO, 1) > 0
  local expected = 0
  for _, kind in ipairs(state.lists.kinds) do
    expected = expected + (kind == 'fifo' and (has_fifo and 0 or 1) or 1)
  end
  if heads < expected then
    state.lists.kinds = {}
    restore_heads(keys, state)
  end
end

-- Whether a list has its turn before a check of another one that joined now. `kind`: of the check. `key`: its order key.
-- `other`: from queue/turn-walk.
function lists.is_before_newcomer(state, kind, key, other)
  if other.kind == kind then
    return other.key <= key
  end
  for rank, earlier in ipairs(state.lists.kinds) do
    if earlier == kind then
      return other.rank < rank
    end
  end
  return true
end

return lists
