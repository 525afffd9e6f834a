-- The lists of a queue (queue/lists), for people who look at the key. Writes nothing.
--
-- A look takes a bounded time: it counts MOST_LOOKED_AT lists at most.

local dead_waiters = require 'queue/dead-waiters'
local entries = require 'queue/entries'
local lists = require 'queue/lists'

local list_states = {}

local MOST_LOOKED_AT = 50

local function ids_of(keys, kind)
  if kind == 'fifo' then
    return { lists.first(keys, lists.FIFO) and lists.FIFO }
  end
  local ids = redis.call('ZRANGE', lists.heads_name(keys, kind), 0, -1)
  for i, head in ipairs(ids) do
    local _
    _, ids[i] = lists.split_head(head)
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
local function find(keys, state)
  local ids, count = {}, 0
  for _, kind in ipairs(state.lists or {}) do
    count = count + (kind == 'fifo' and 1 or redis.call('ZCARD', lists.heads_name(keys, kind)))
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

local function sort(states)
  table.sort(states, function(a, b)
    if a.waiting ~= b.waiting then
      return a.waiting > b.waiting
    end
    return a.ticket < b.ticket
  end)
end

-- Returns the longest lists, at most this number, of each its `id`, how many are `waiting` in it, and `oldestMillis`, for how many ms
-- its first waiter has waited; and how many lists have waiters.
function list_states.longest(keys, state, tally, now_ms, most)
  local ids, count = find(keys, state)
  local found, dead = {}, dead_waiters.begin(keys, state, tally, now_ms)
  for i, id in ipairs(ids) do
    found[i] = { id = id, waiting = lists.count(keys, id), ticket = entries.ticket_of(lists.first(keys, id)) }
  end
  sort(found)
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
  sort(longest)
  local described = {}
  for i, list in ipairs(longest) do
    local oldest = math.max(0, now_ms - math.floor(tonumber(list.ticket) / 1000))
    described[i] = { id = list.id, waiting = list.waiting, oldestMillis = oldest }
  end
  return described, count
end

return list_states
