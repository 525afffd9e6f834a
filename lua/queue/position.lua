-- Where a waiter stands in its list of a key's queue: 1 is the head. queue/dead-waiters has those of several lists that do not
-- count.
--
-- The only list has entries that do not count: of withdrawn waiters, and of waiters of dead replicas. The first WALKED entries
-- are read to leave these out. So the position is exact while at most WALKED entries are before it. Entries behind these
-- all count. A binary search by ticket finds the waiter's entry, however long the list is.

local dead_waiters = require 'queue/dead-waiters'
local entries = require 'queue/entries'
local fifo_list = require 'queue/fifo-list'
local heads = require 'queue/heads'
local lists = require 'queue/lists'

local position = {}

local WALKED = 1000

-- How many values of an ordered list are lower. `is_lower(i)`: whether the one at this index is, from 0 on.
local function count_lower(length, is_lower)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_lower(middle) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- The tickets of waiters that count among the first entries, as texts and in their order. `most`: how many entries.
local function read_counting(keys, state, tally, now_ms, most)
  local tickets = {}
  for _, entry in ipairs(entries.read(keys, fifo_list.first(keys, most))) do
    if heads.counts(state, tally, entry, now_ms) then
      tickets[#tickets + 1] = entry.ticket
    end
  end
  if state.unsorted == 1 then
    table.sort(tickets)
  end
  return tickets
end

local function before_in_lists(keys, state, tally, now_ms, waiters)
  local before, dead = {}, dead_waiters.begin(keys, state, tally, now_ms)
  for i, waiter in ipairs(waiters) do
    local list = waiter.list and waiter.list.id or lists.FIFO
    before[i] = lists.count(keys, list, waiter.ticket)
    before[i] = before[i] - dead:count(list, before[i])
  end
  return before
end

-- How many stand before each of these waiters, by their requests. The entries are read once, as far as the last of the waiters.
-- While a list is out of order, that is exact if the list has WALKED entries at most.
function position.before_all(keys, state, tally, now_ms, waiters)
  if state.lists then
    return before_in_lists(keys, state, tally, now_ms, waiters)
  end
  local length, is_sorted = fifo_list.length(keys), state.unsorted ~= 1
  local lower, most = {}, 0
  for i, waiter in ipairs(waiters) do
    lower[i] = count_lower(length, function(index)
      return fifo_list.ticket_at(keys, index) < waiter.ticket
    end)
    most = math.max(most, is_sorted and lower[i] or length)
  end
  if most == 0 or (is_sorted and length == tally.living) then
    return lower
  end
  local counting, before = read_counting(keys, state, tally, now_ms, math.min(most, WALKED)), {}
  for i, waiter in ipairs(waiters) do
    local walked = count_lower(#counting, function(index)
      return counting[index + 1] < waiter.ticket
    end)
    before[i] = walked + math.max(0, lower[i] - WALKED)
  end
  return before
end

return position
