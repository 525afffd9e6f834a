-- Where a waiter stands in a key's queue: 1 is the head.
--
-- The list has entries that do not count: of withdrawn waiters, and of waiters of dead replicas. The first WALKED entries
-- are read to leave these out. So the position is exact while at most WALKED entries are before it. Entries behind these
-- all count. A binary search by ticket finds the waiter's entry, however long the list is.

local entries = require 'queue/entries'
local fifo_list = require 'queue/fifo-list'
local queue = require 'queue/queue'

local position = {}

local WALKED = 1000

-- How many entries of a list in order have a lower ticket.
local function count_lower(keys, length, ticket)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    if fifo_list.ticket_at(keys, middle) < ticket then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- Of the first entries, at most `most`, those of waiters that count: their tickets, as texts, by their indices.
local function read_counted(keys, state, tally, now_ms, most)
  local counted = {}
  for i, entry in ipairs(queue.read_entries(keys, state, fifo_list.first(keys, most), true)) do
    counted[i] = queue.counts(state, tally, entry, now_ms) and entry.ticket or false
  end
  return counted
end

-- How many of these tickets are lower than this one.
local function count_before(counted, ticket)
  local count, text = 0, entries.format_ticket(ticket)
  for _, other in ipairs(counted) do
    if other and other < text then
      count = count + 1
    end
  end
  return count
end

-- By each index of a list in order, how many entries up to there are of waiters that count.
local function running_counts(counted)
  local counts, count = {}, 0
  for i, ticket in ipairs(counted) do
    count = count + (ticket and 1 or 0)
    counts[i] = count
  end
  return counts
end

-- Returns a function that says the position of a waiter with a ticket. It reads the entries once for all waiters that it is
-- asked about. While a list is out of order, a position is exact if the list has WALKED entries at most.
function position.finder(keys, state, tally, now_ms)
  local length, is_sorted = fifo_list.length(keys), state.unsorted ~= 1
  local all_count = is_sorted and length == tally.living
  local counted, counts
  return function(ticket)
    local lower = count_lower(keys, length, ticket)
    local most = math.min(is_sorted and lower or length, WALKED)
    if most == 0 or all_count then
      return lower + 1
    end
    if not counted then
      counted = read_counted(keys, state, tally, now_ms, math.min(length, WALKED))
      counts = running_counts(counted)
    end
    local before = is_sorted and counts[most] or count_before(counted, ticket)
    return before + math.max(0, lower - most) + 1
  end
end

return position
