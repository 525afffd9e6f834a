-- A walk over the waiters of one list (queue/fifo-list) in the order of their turns, which changes nothing until it is
-- written.

local entries = require 'queue/entries'
local fifo_list = require 'queue/fifo-list'

local fifo_walk = {}
fifo_walk.__index = fifo_walk

-- Begins a walk of at most `most` entries.
function fifo_walk.begin(keys, most)
  return setmetatable({
    keys = keys, entries = entries.read(keys, fifo_list.first(keys, most)), taken = 0,
  }, fifo_walk)
end

-- The next entry; nil if there is none, or the one before it was stopped.
function fifo_walk:next()
  return not self.is_stopped and self.entries[self.taken + 1] or nil
end

-- The next entry leaves the queue.
function fifo_walk:take()
  self.taken = self.taken + 1
end

-- The next entry waits on, and nobody passes it.
function fifo_walk:stop()
  self.is_stopped = true
end

-- Removes those who were taken from the queue.
function fifo_walk:write()
  fifo_list.remove_first(self.keys, self.taken)
end

return fifo_walk
