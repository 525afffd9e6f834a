-- Everything about one key as of now: what `inspect` says of it, its window, what requests have set, and which waiters
-- it has on which replicas. Writes nothing. Waiters of dead replicas do not count, and are not named.
--
-- KEYS  1 state, 2 queue, 3 records, 4 replicas
-- ARGV  1 how many waiters to name at most, 2 how many lists
-- Reply a JSON text, or '' if there is no such key: what inspect.lua replies of it, and
--         windowIsSet   whether a request has set the length of the window, or of the next one
--         isRecovering  whether the key recovers
--         queue         the head of the queue, if anybody waits: for each waiter its `replica`, and `waitedMillis`
--         lists         of a queue with several lists (queue/lists), the longest ones: for each its `id`, `waiting`, how many wait in
--                       it, `oldestMillis`, for how many ms its head has waited, and of a group that is stopped `stoppedBy` and
--                       `stoppedMillis`, as `group_limits.reason_of_stop` says
--         groups        of a key with limits that each group has to itself, the fullest ones: see `group_limits.fullest`
--         listCount     how many lists have waiters, in such a queue; else 0
--         replicas      if anybody waits, for each replica with places: `replica`, `places`, and `leaseMillis`, for how many ms the
--                       last of them counts, unless its lease is renewed

local dead_waiters = require 'queue/dead-waiters'
local entries = require 'queue/entries'
local heads = require 'queue/heads'
local in_force = require 'lib/in-force'
local key_limits = require 'limits/key-limits'
local lists = require 'queue/lists'
local now = require 'lib/now'
local recovery = require 'lib/recovery'
local replicas = require 'queue/replicas'
local room = require 'lib/room'
local snapshot = require 'lib/snapshot'

-- Withdrawn entries may stand before those of waiters, so more entries are read than are named.
local MOST_ENTRIES = 500

-- For how many ms the waiter with a ticket has waited.
local function waited(ticket, now_ms)
  return math.max(0, now_ms - math.floor(tonumber(ticket) / 1000))
end

local function head_of_queue(keys, state, tally, now_ms, most)
  local head = {}
  for _, waiter in ipairs(heads.first_waiters(keys, state, tally, now_ms, most, MOST_ENTRIES)) do
    head[#head + 1] = { replica = replicas.split_id(waiter.replica_id), waitedMillis = waited(waiter.ticket, now_ms) }
  end
  return head
end

-- A look takes a bounded time: it counts this many lists at most.
local MOST_LOOKED_AT = 50

local function ids_of(keys, kind)
  if kind == 'fifo' then
    return { lists.first(keys, lists.FIFO) and lists.FIFO }
  end
  local ids = {}
  for _, name in ipairs({ kind, kind == 'group' and 'stopped' or nil }) do
    for _, head in ipairs(redis.call('ZRANGE', lists.heads_name(keys, name), 0, -1)) do
      local _
      _, ids[#ids + 1] = lists.split_head(head)
    end
  end
  return ids
end

-- The ids of the lists that the queue has at equal distances: of all lists with a MOST_LOOKED_AT-th of the entries, since the
-- entries of a list follow each other.
local function find_large(keys)
  local ids, length = {}, lists.length(keys)
  for i = 0, MOST_LOOKED_AT - 1 do
    local index = math.floor(i * length / MOST_LOOKED_AT)
    local id = entries.list_of(redis.call('ZRANGE', keys.queue, index, index)[1])
    if id ~= ids[#ids] then
      ids[#ids + 1] = id
    end
  end
  return ids
end

-- The ids of the lists that are looked at, and how many lists there are.
local function find_lists(keys, state)
  local ids, count = {}, 0
  for _, kind in ipairs(state.lists or {}) do
    count = count + (kind == 'fifo' and 1 or redis.call('ZCARD', lists.heads_name(keys, kind)))
    count = count + (kind == 'group' and redis.call('ZCARD', lists.heads_name(keys, 'stopped')) or 0)
  end
  if count > MOST_LOOKED_AT then
    return find_large(keys), count
  end
  for _, kind in ipairs(state.lists or {}) do
    for _, id in ipairs(ids_of(keys, kind)) do
      ids[#ids + 1] = id
    end
  end
  return ids, #ids
end

local function sort_lists(states)
  table.sort(states, function(a, b)
    if a.waiting ~= b.waiting then
      return a.waiting > b.waiting
    end
    return a.ticket < b.ticket
  end)
end

-- Returns the longest lists, at most this number, of each its `id`, how many are `waiting` in it, and `oldestMillis`, for how many ms
-- its first waiter has waited; and how many lists have waiters.
local function longest_lists(keys, state, tally, now_ms, most)
  local ids, count = find_lists(keys, state)
  local found, dead = {}, dead_waiters.begin(keys, state, tally, now_ms)
  for i, id in ipairs(ids) do
    local head = lists.first_waiter(keys, id)
    found[i] = { id = id, waiting = lists.count(keys, id), ticket = head.ticket, hits = head.hits }
  end
  sort_lists(found)
  local longest = {}
  for i = 1, math.min(most, #found) do
    local list = found[i]
    local gone, first = dead:count(list.id, list.waiting)
    if gone < list.waiting then
      list.waiting, list.ticket = list.waiting - gone, first or list.ticket
      longest[#longest + 1] = list
    else
      count = count - 1
    end
  end
  sort_lists(longest)
  for _, list in ipairs(longest) do
    local hits, is_group = list.hits, lists.kind_of(list.id) == 'group'
    list.oldestMillis, list.ticket, list.hits = waited(list.ticket, now_ms), nil, nil
    if state.groups and is_group and not room.is_closed(state) and key_limits.fit(state, hits) then
      list.stoppedBy, list.stoppedMillis = state.groups:reason_of_stop(list.id, hits)
    end
  end
  return longest, count
end

-- Those of a replica and those that it keeps are together.
local function replicas_of(tally, now_ms)
  local described, by_id = {}, {}
  for id, replica in pairs(tally.replicas) do
    if replica.places > 0 then
      local replica_id = replicas.split_id(id)
      if not by_id[replica_id] then
        by_id[replica_id] = { replica = replica_id, places = 0, leaseMillis = -now_ms }
        described[#described + 1] = by_id[replica_id]
      end
      local sum = by_id[replica_id]
      sum.places, sum.leaseMillis = sum.places + replica.places, math.max(sum.leaseMillis, replica.lease_ends - now_ms)
    end
  end
  return described
end

local function run(KEYS, ARGV)
  local keys = { state = KEYS[1], queue = KEYS[2], records = KEYS[3], replicas = KEYS[4] }
  local now_us = now.micros()
  local now_ms = math.floor(now_us / 1000)
  local state, tally, waiting = snapshot.at(keys, now_us)
  if not state then
    return ''
  end
  local reply = snapshot.describe(state, waiting, now_ms)
  reply.windowIsSet, reply.isRecovering = in_force.sets_window(state), recovery.is_on(state)
  reply.queue = head_of_queue(keys, state, tally, now_ms, tonumber(ARGV[1]))
  reply.lists, reply.listCount = longest_lists(keys, state, tally, now_ms, tonumber(ARGV[2]))
  reply.groups = state.groups and state.groups:fullest(tonumber(ARGV[2])) or nil
  reply.replicas = replicas_of(tally, now_ms)
  return cjson.encode(reply)
end
