-- The order of a key's waiters: a list of entries (queue/entries), first come, first served. Entries of withdrawn
-- waiters stay in it until they come to its head, so that no script searches the list.

local chunks = require 'lib/chunks'
local entries = require 'queue/entries'
local weight = require 'lib/weight'

local fifo_list = {}

-- How many entries there are; nil if the queue has several lists, which only the state knows.
function fifo_list.length(keys)
  local length = redis.pcall('LLEN', keys.queue)
  return type(length) == 'number' and length or nil
end

function fifo_list.first(keys, most)
  return weight.add(redis.call('LRANGE', keys.queue, 0, most - 1), 1)
end

function fifo_list.all(keys)
  return weight.add(redis.call('LRANGE', keys.queue, 0, -1), 1)
end

-- The ticket of an entry, as a text, from the head on or, below 0, from the end; false if there is none.
function fifo_list.ticket_at(keys, index)
  local entry = redis.call('LINDEX', keys.queue, index)
  return entry and entries.ticket_of(entry)
end

-- Keeps only the entries of waiters. `waiters`: of all entries, in their order.
function fifo_list.keep(keys, waiters)
  local kept = {}
  for _, waiter in ipairs(waiters) do
    kept[#kept + 1] = waiter.is_waiting and waiter.text or nil
  end
  redis.call('UNLINK', keys.queue)
  chunks.call('RPUSH', keys.queue, kept)
end

function fifo_list.sort(keys)
  weight.read = weight.read + redis.call('SORT', keys.queue, 'ALPHA', 'STORE', keys.queue)
end

-- A walk over the waiters in the order of their turns, which changes nothing until it is written.
local fifo_walk = {}
fifo_walk.__index = fifo_walk

function fifo_list.walk(keys, most)
  return setmetatable({ keys = keys, entries = entries.read(keys, fifo_list.first(keys, most)), taken = 0 }, fifo_walk)
end

-- The next entry; nil if there is none, or the one before it was stopped.
function fifo_walk:next()
  return not self.is_stopped and self.entries[self.taken + 1] or nil
end

function fifo_walk:take()
  self.taken = self.taken + 1
end

-- The next entry waits on, and nobody passes it.
function fifo_walk:stop()
  self.is_stopped = true
end

function fifo_walk:write()
  redis.call('LTRIM', self.keys.queue, self.taken, -1)
end

return fifo_list
