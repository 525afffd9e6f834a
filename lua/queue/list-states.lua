-- The lists of a queue (queue/lists), for people who look at the key. Writes nothing.

local lists = require 'queue/lists'

local list_states = {}

-- Of more groups, those that are served last are not looked at.
local MOST_LOOKED_AT = 1000

-- The ticket of the head of a list. `head`: `<ticket>:<anything>`.
local function ticket_of(head)
  return tonumber(string.match(head, '^%d+'))
end

-- The lists of a kind: of each its id and the ticket of its head. And how many there are.
local function of_kind(keys, kind)
  if kind == 'fifo' then
    local first = lists.first(keys, lists.FIFO)
    local rest = first and string.sub(first, #lists.FIFO + 2)
    return rest and { { id = lists.FIFO, ticket = ticket_of(rest) } } or {}, rest and 1 or 0
  end
  local name, found = lists.heads_name(keys, kind), {}
  for i, head in ipairs(redis.call('ZRANGE', name, 0, MOST_LOOKED_AT - 1)) do
    found[i] = { id = string.match(head, '^%d+:(.*)$'), ticket = ticket_of(head) }
  end
  return found, redis.call('ZCARD', name)
end

-- Returns the longest lists, at most this number: of each its id, how many entries it has, and when its head came, in ms since
-- 1970, one after the other; and how many lists have waiters.
function list_states.longest(keys, state, most)
  local all, count = {}, 0
  for _, kind in ipairs(state.lists or {}) do
    local found, of_this = of_kind(keys, kind)
    count = count + of_this
    for _, list in ipairs(found) do
      list.waiting = lists.count(keys, list.id)
      all[#all + 1] = list
    end
  end
  table.sort(all, function(a, b)
    if a.waiting ~= b.waiting then
      return a.waiting > b.waiting
    end
    return a.ticket < b.ticket
  end)
  local values = {}
  for i = 1, math.min(most, #all) do
    local list = all[i]
    values[#values + 1], values[#values + 2], values[#values + 3] = list.id, list.waiting, math.floor(list.ticket / 1000)
  end
  return values, count
end

return list_states
