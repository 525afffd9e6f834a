-- The order of a key's waiters: a list of entries (queue/entries), first come, first served. Entries of withdrawn
-- waiters stay in it until they come to its head, so that no script searches the list.

local chunks = require 'lib/chunks'
local entries = require 'queue/entries'
local weight = require 'lib/weight'

local fifo_list = {}

-- A list of up to this many entries is never compacted.
local COMPACTION_SLACK = 100

-- How many entries there are; nil if the queue has several lists, which only the state knows.
function fifo_list.length(keys)
  local length = redis.pcall('LLEN', keys.queue)
  return type(length) == 'number' and length or nil
end

-- The first entries, at most this number.
function fifo_list.first(keys, most)
  return weight.add(redis.call('LRANGE', keys.queue, 0, most - 1), 1)
end

function fifo_list.all(keys)
  return weight.add(redis.call('LRANGE', keys.queue, 0, -1), 1)
end

-- The ticket of an entry, as a text; false if there is none.
function fifo_list.ticket_at(keys, index)
  local entry = redis.call('LINDEX', keys.queue, index)
  return entry and entries.ticket_of(entry)
end

-- The ticket of the head; false if there is none.
function fifo_list.first_ticket(keys)
  return fifo_list.ticket_at(keys, 0)
end

function fifo_list.last_ticket(keys)
  return fifo_list.ticket_at(keys, -1)
end

function fifo_list.append(keys, new)
  chunks.call('RPUSH', keys.queue, new)
end

function fifo_list.remove_first(keys, count)
  redis.call('LTRIM', keys.queue, count, -1)
end

-- Whether more than half of a list is withdrawn if it has this number of places.
function fifo_list.has_many_withdrawn(keys, places)
  return fifo_list.length(keys) > 2 * places + COMPACTION_SLACK
end

-- Drops the entries of withdrawn waiters. `waiters`: of all entries, in their order.
function fifo_list.keep(keys, waiters)
  local kept = {}
  for _, waiter in ipairs(waiters) do
    kept[#kept + 1] = waiter.is_waiting and waiter.text or nil
  end
  redis.call('UNLINK', keys.queue)
  chunks.call('RPUSH', keys.queue, kept)
end

-- Brings the entries into the order of their tickets.
function fifo_list.sort(keys)
  weight.read = weight.read + redis.call('SORT', keys.queue, 'ALPHA', 'STORE', keys.queue)
end

return fifo_list
