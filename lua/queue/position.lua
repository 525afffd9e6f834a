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

-- How many of the first entries are of waiters that count and have a lower ticket. `most`: how many entries, at least one.
local function walk(keys, state, tally, now_ms, ticket, most)
  local count, text = 0, entries.format_ticket(ticket)
  for _, entry in ipairs(queue.read_entries(keys, state, fifo_list.first(keys, most), true)) do
    if entry.ticket < text and queue.counts(state, tally, entry, now_ms) then
      count = count + 1
    end
  end
  return count
end

-- The position of a waiter with this ticket. While a list is out of order, it is exact if the list has WALKED entries at
-- most.
function position.of(keys, state, tally, now_ms, ticket)
  local length = fifo_list.length(keys)
  local lower = count_lower(keys, length, ticket)
  local most = math.min(state.unsorted == 1 and length or lower, WALKED)
  if most == 0 or (length == tally.living and state.unsorted ~= 1) then
    return lower + 1
  end
  return walk(keys, state, tally, now_ms, ticket, most) + math.max(0, lower - most) + 1
end

return position
